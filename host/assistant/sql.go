package assistant

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

const defaultRows = 100

// queryCall runs SQL over the copy of this assistant. That it only reads, and only that, is
// the engine's doing: host/query.
func (s *seat) queryCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
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
	m, done, err := s.copies(ctx)
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

// The bounds of a search.
const (
	maxWords   = 8
	maxSearch  = 500 // bytes
	snippetAny = 60  // bytes on each side of what was found
)

// searchCall finds records in the copy of this assistant: what it may not see is not there,
// and has no say in what comes first.
func (s *seat) searchCall(ctx context.Context, r *mcp.CallToolRequest) (answer, int, error) {
	q := struct {
		Words      string `json:"words"`
		Connection string `json:"connection"`
		Stream     string `json:"stream"`
		Limit      int    `json:"limit"`
	}{Limit: 20}
	if err := read(r, &q); err != nil {
		return nil, 0, err
	}
	words := strings.Fields(q.Words)
	switch {
	case len(words) == 0 || len(words) > maxWords || len(q.Words) > maxSearch || strings.ContainsRune(q.Words, 0):
		return nil, 0, refuse("arguments", "words: want 1 to 8 words.")
	case q.Limit < 1 || q.Limit > 100:
		return nil, 0, refuse("arguments", "limit: want 1 to 100.")
	}
	m, done, err := s.copies(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	tables, err := m.Tables(ctx, nil)
	if err != nil {
		return nil, 0, err
	}
	found := []shownRecord{}
	for _, t := range tables {
		if q.Connection != "" && t.ConnectionID != q.Connection || q.Stream != "" && t.Stream != q.Stream || len(found) == q.Limit {
			continue
		}
		more, err := s.searchTable(ctx, m, t, words, q.Limit-len(found))
		if err != nil {
			return nil, 0, err
		}
		found = append(found, more...)
	}
	return recordList{Notice: notice, Records: found}, len(found), nil
}

func tableOf(t host.Table) string { return identifier(t.ConnectionID) + "." + identifier(t.Stream) }

// searchTable finds the newest records of a table in which all words occur.
func (s *seat) searchTable(ctx context.Context, m host.Queries, t host.Table, words []string, limit int) ([]shownRecord, error) {
	columns := []string{"_key"}
	for _, c := range t.Columns {
		columns = append(columns, identifier(c.Name))
	}
	all := "concat_ws(char(10)," + strings.Join(columns, ",") + ")"
	var where []string
	for _, w := range words {
		where = append(where, all+" LIKE "+literal("%"+likeable.Replace(w)+"%")+` ESCAPE '\'`)
	}
	sql := "SELECT _key, " + all + " FROM " + tableOf(t) + " WHERE " + strings.Join(where, " AND ") + " ORDER BY _version DESC"
	got, err := m.Query(ctx, host.Query{SQL: sql, Rows: limit})
	if err != nil {
		return nil, err
	}
	var out []shownRecord
	for _, row := range got.Rows {
		var key, text string
		if json.Unmarshal(row[0], &key) != nil || json.Unmarshal(row[1], &text) != nil {
			continue
		}
		r, err := s.window.Record(ctx, store.ConnectionID(t.ConnectionID), store.Stream(t.Stream), key)
		if err != nil {
			continue // it went meanwhile
		}
		x := shown(r, textInList)
		x.Connection, x.Stream, x.Snippet = t.ConnectionID, t.Stream, snippet(text, words)
		out = append(out, x)
	}
	return out, nil
}

var likeable = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// snippet is what stands around the first of the words that is found.
func snippet(text string, words []string) string {
	lower := strings.ToLower(text)
	at := slices.Max([]int{strings.Index(lower, strings.ToLower(words[0])), 0})
	if at > len(text) { // lower case may be longer
		at = 0
	}
	from, to := max(at-snippetAny, 0), min(at+len(words[0])+snippetAny, len(text))
	return strings.ToValidUTF8(text[from:to], "")
}
