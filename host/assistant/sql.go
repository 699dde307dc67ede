package assistant

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
)

const defaultRows = 100

// queryCall runs SQL on this assistant's copy. Package query ensures that it only reads, and nothing else.
func (s *endpoint) queryCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	q := struct {
		SQL  string `json:"sql"`
		Rows int    `json:"rows"`
	}{Rows: defaultRows}
	if err := read(r, &q); err != nil {
		return nil, 0, err
	}
	if q.Rows < 1 || q.Rows > 1000 {
		return nil, 0, refuse("arguments", "rows: want 1 to 1000.")
	}
	m, done, err := s.borrow(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	found, err := m.Query(ctx, host.Query{SQL: q.SQL, Rows: q.Rows})
	if err != nil {
		return nil, 0, err
	}
	out := struct {
		Notice    string              `json:"notice"`
		Columns   []string            `json:"columns"`
		Rows      [][]json.RawMessage `json:"rows"`
		Truncated bool                `json:"truncated"`
	}{notice, []string{}, found.Rows, found.Truncated}
	for _, c := range found.Columns {
		out.Columns = append(out.Columns, cutText(c.Name, 200))
	}
	size := 0
	for i, row := range out.Rows {
		for j := range row {
			row[j] = bound(row[j], textInQuery)
			size += len(row[j])
		}
		if size > maxAnswer && i > 0 {
			out.Rows, out.Truncated = out.Rows[:i], true
			break
		}
	}
	return out, len(out.Rows), nil
}
