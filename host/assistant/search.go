package assistant

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// searchCall searches this assistant's own index. What it may not see is not in there and does not influence the
// ranking.
func (s *endpoint) searchCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	q := struct {
		Words      string `json:"words"`
		Connection string `json:"connection"`
		Stream     string `json:"stream"`
		Limit      int    `json:"limit"`
	}{Limit: 20}
	if err := read(r, &q); err != nil {
		return nil, 0, err
	}
	if q.Limit < 1 || q.Limit > 100 {
		return nil, 0, refuse("arguments", "limit: want 1 to 100.")
	}
	c, done, err := s.borrow(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	found, err := c.indexes.Search(ctx,
		host.SearchQuery{Words: q.Words, ConnectionID: q.Connection, Stream: q.Stream, Limit: q.Limit})
	if err != nil {
		return nil, 0, err
	}
	out := recordList{Notice: notice, Records: []shownRecord{}}
	size := 0
	for _, hit := range found.Hits {
		record, err := s.view.Record(ctx, store.ConnectionID(hit.ConnectionID), store.Stream(hit.Stream), hit.Key)
		if errors.Is(err, store.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		x := shown(record, textInList)
		x.Connection, x.Stream, x.Snippet = hit.ConnectionID, hit.Stream, snippet(hit)
		if size += x.size(); size > maxAnswer && len(out.Records) > 0 {
			break
		}
		out.Records = append(out.Records, x)
	}
	return out, len(out.Records), nil
}

// snippet returns the text around the matches, one line per field.
func snippet(hit host.Hit) string {
	var b strings.Builder
	for i, s := range hit.Snippets {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, p := range s.Parts {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
