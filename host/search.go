package host

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Searcher finds records by words, from a full-text index that it brings up to date first.
type Searcher interface {
	// Search returns the best matches. It returns a *Refusal: validation_error for a wrong
	// query, search_limit for one that takes too long.
	Search(ctx context.Context, q SearchQuery) (SearchResult, error)
}

type SearchQuery struct {
	// Words must all be in a record, ignoring case and accents: word, "exact phrase",
	// prefix*, and -word to exclude.
	Words        string
	ConnectionID string // "" is all
	Stream       string // "" is all
	Limit        int    // of hits: 20 for 0, at most 100
	// Only are the connections that the search may see; nil is all.
	Only []store.ConnectionID
}

// A SearchResult lists matches, best first.
type SearchResult struct {
	Hits []Hit `json:"data"`
	// More says that there are more hits than Limit.
	More bool `json:"more"`
}

// A Hit is a record that matches.
type Hit struct {
	ConnectionID string    `json:"connectionId"`
	Stream       string    `json:"stream"`
	Key          string    `json:"key"` // canonical
	IngestedAt   time.Time `json:"ingestedAt"`
	Snippets     []Snippet `json:"snippets"` // at most three
	Links        HitLinks  `json:"links"`
}

// HitLinks are paths of the host at which the record is found.
type HitLinks struct {
	Record string `json:"record"` // of the API
	Page   string `json:"page"`   // of the dashboard
}

// A Snippet is an excerpt of a field around a match. Its text is untrusted.
type Snippet struct {
	Field string        `json:"field"` // path, such as author.name
	Parts []SnippetPart `json:"parts"` // consecutive
}

// A SnippetPart is a piece of text that matches, or that surrounds a match.
type SnippetPart struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"`
}
