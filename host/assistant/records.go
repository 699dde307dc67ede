package assistant

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/store"
)

// A shownRecord is a record as an assistant sees it.
type shownRecord struct {
	Connection string          `json:"connection,omitempty"`
	Stream     string          `json:"stream,omitempty"`
	Key        string          `json:"key"`
	ChangedAt  string          `json:"changedAt,omitempty"`
	Deleted    bool            `json:"deleted,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Snippet    string          `json:"snippet,omitempty"`
}

func shown(r store.Record, most int) shownRecord {
	out := shownRecord{Key: r.Key, ChangedAt: r.IngestedAt.UTC().Format(time.RFC3339), Deleted: r.Deleted}
	if len(r.Data) > 0 {
		out.Data = bound(r.Data, most)
	}
	return out
}

// size returns the approximate size of the record in an answer, in bytes.
func (r shownRecord) size() int { return len(r.Data) + len(r.Key) + len(r.Snippet) + 100 }

// A recordList is an answer with several records.
type recordList struct {
	Notice  string        `json:"notice"`
	Records []shownRecord `json:"records"`
	Cursor  string        `json:"cursor,omitempty"`
	More    *bool         `json:"more,omitempty"`
}

// A listing has the arguments of a list.
type listing struct {
	Connection string `json:"connection"`
	Stream     string `json:"stream"`
	Limit      int    `json:"limit"`
	Cursor     string `json:"cursor"`
}

// query returns the store query for the arguments of a list, which is either in ascending order of changes or newest
// first.
func (s *endpoint) query(r *mcp.CallToolRequest, changes bool) (store.RecordQuery, error) {
	var l listing
	if err := read(r, &l); err != nil {
		return store.RecordQuery{}, err
	}
	q := store.RecordQuery{Connection: store.ConnectionID(l.Connection), Stream: store.Stream(l.Stream), Limit: l.Limit,
		Descending: !changes, Deleted: changes}
	switch {
	case q.Limit == 0:
		q.Limit = 20
	case q.Limit < 0 || q.Limit > 100:
		return q, refuse("arguments", "limit: want 1 to 100.")
	}
	if l.Cursor != "" {
		after, ok := s.openCursor(q, l.Cursor)
		if !ok {
			return q, refuse("arguments", "cursor: want one of an earlier answer, of the same tool about the same stream.")
		}
		q.After = after
	}
	return q, nil
}

// maxPages bounds how many pages of about a thousand records one call reads. An answer without records that says there
// are more reveals that so many are invisible.
const maxPages = 1000

// pages lists records until there are enough or the answer is full. It returns where to continue and whether there are
// more.
func (s *endpoint) pages(ctx context.Context, q store.RecordQuery) (out []shownRecord, after uint64,
	more bool, err error) {
	size, want := 0, q.Limit
	out = []shownRecord{}
	for range maxPages {
		q.Limit = want - len(out)
		page, err := s.view.list(ctx, q)
		if err != nil {
			return nil, 0, false, err
		}
		for _, r := range page.Records {
			x := shown(r, textInList)
			if size += x.size(); size > maxAnswer && len(out) > 0 {
				return out, q.After, true, nil
			}
			out = append(out, x)
			q.After = r.Version
		}
		if !page.More {
			return out, max(page.After, q.After), false, nil
		}
		q.After = page.After
		if len(out) == want {
			return out, q.After, true, nil
		}
	}
	return out, q.After, true, nil
}

func (s *endpoint) listCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	q, err := s.query(r, false)
	if err != nil {
		return nil, 0, err
	}
	found, after, more, err := s.pages(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	out := recordList{Notice: notice, Records: found}
	if more {
		out.Cursor = s.cursor(q, after)
	}
	return out, len(found), nil
}

func (s *endpoint) changesCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	q, err := s.query(r, true)
	if err != nil {
		return nil, 0, err
	}
	found, after, more, err := s.pages(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	return recordList{Notice: notice, Records: found, Cursor: s.cursor(q, max(after, q.After)), More: &more}, len(found),
		nil
}

func (s *endpoint) getCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	var q struct{ Connection, Stream, Key string }
	if err := read(r, &q); err != nil {
		return nil, 0, err
	}
	found, err := s.view.Record(ctx, store.ConnectionID(q.Connection), store.Stream(q.Stream), q.Key)
	if err != nil {
		return nil, 0, err
	}
	return struct {
		Notice string      `json:"notice"`
		Record shownRecord `json:"record"`
	}{notice, shown(found, textAlone)}, 1, nil
}
