package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Searcher finds records by the words in their texts, from an index that is brought up to
// date first.
type Searcher interface {
	// Search finds the records that fit best. A *Refusal with validation_error says what is
	// wrong with a query; search_limit ends one that takes too long.
	Search(ctx context.Context, q SearchQuery) (SearchResult, error)
}

// A SearchQuery is what is looked for, and where.
type SearchQuery struct {
	// Words must all be in a record, whatever their case and accents: word, "words in a
	// row", begin*, and -word for what must not be there.
	Words        string
	ConnectionID string // "" is all
	Stream       string // "" is all
	Limit        int    // the most hits: 20 for 0, at most 100
	// Only are the connections that it may see; nil is all.
	Only []store.ConnectionID
}

// A SearchResult is what was found, the best first.
type SearchResult struct {
	Hits []Hit `json:"data"`
	// More: there are more hits than were asked for.
	More bool `json:"more"`
}

// A Hit is a record in which the words are.
type Hit struct {
	ConnectionID string    `json:"connectionId"`
	Stream       string    `json:"stream"`
	Key          string    `json:"key"` // canonical
	IngestedAt   time.Time `json:"ingestedAt"`
	Snippets     []Snippet `json:"snippets"` // at most three
	Links        HitLinks  `json:"links"`
}

// HitLinks say where the record is, as paths of the host.
type HitLinks struct {
	Record string `json:"record"` // of the API
	Page   string `json:"page"`   // of the dashboard
}

// A Snippet is a part of a field around what was found. It is foreign text.
type Snippet struct {
	Field string        `json:"field"` // a path such as author.name
	Parts []SnippetPart `json:"parts"` // they follow each other
}

// A SnippetPart is a piece of text that was looked for, or that stands around it.
type SnippetPart struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"`
}
