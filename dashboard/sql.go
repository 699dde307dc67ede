package dashboard

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// Bounds of the query page: a statement in an address, rows shown, plotted and downloaded, and
// saved queries.
const (
	maxStatement  = 4096
	shownRows     = 200
	shownCells    = 20_000
	plottedRows   = 10_000
	downloadRows  = 100_000
	maxSaved      = 200
	maxSavedBytes = 100_000
)

// sqlUI serves the query page and the owner's saved queries.
type sqlUI struct {
	*frame
	queries host.Queries
	saved   store.Documents
	audit   host.AuditLog
}

func (u *sqlUI) routes() []web.Route {
	return []web.Route{
		page("/ui/data/sql", u.showSQL),
		action("/ui/data/sql", u.runSQL),
		part("/ui/data/sql/tables", u.listTables),
		part("/ui/data/sql/download", u.download),
		action("/ui/data/sql/save", u.save),
		action("/ui/data/sql/forget", u.forget),
	}
}

// A savedQuery is a document of kind store.SavedQueries under its name.
type savedQuery struct {
	Name    string    `json:"-"`
	SQL     string    `json:"sql"`
	SavedAt time.Time `json:"savedAt"`
}

func (u *sqlUI) showSQL(c *fiber.Ctx) error {
	q := web.QueryOf(c)
	body := struct {
		SQL, Name string
		Saved     []savedQuery
	}{SQL: q.Text("sql", maxStatement), Name: q.Text("saved", 64)}
	if err := q.Err(); err != nil {
		return err
	}
	docs, err := u.saved.Documents(web.Context(c), store.DocumentQuery{Kind: store.SavedQueries, Limit: maxSaved})
	if err != nil {
		return err
	}
	for _, d := range docs {
		s := savedQuery{Name: d.ID}
		if json.Unmarshal(d.Data, &s) != nil {
			continue // written by a newer version of the host
		}
		body.Saved = append(body.Saved, s)
	}
	if i := slices.IndexFunc(body.Saved, func(s savedQuery) bool { return s.Name == body.Name }); i >= 0 {
		body.SQL = body.Saved[i].SQL
	} else {
		body.Name = ""
	}
	return u.show(c, "sql", content{Title: "SQL", Nav: "data", Body: body})
}

// listTables lists the tables to query. It brings the copy up to date, so the page requests it only
// when it is shown.
func (u *sqlUI) listTables(c *fiber.Ctx) error {
	ctx, done := web.ClientContext(c)
	defer done()
	all, err := u.queries.Tables(ctx, nil)
	if err != nil {
		return err
	}
	return u.write(c, "sql", "tables", all)
}

// found is the result of a query for the page.
type found struct {
	host.QueryResult
	Took     time.Duration
	Shown    [][]string
	X, Y, As string
	Plot     *plot
	Why      string // why there is no plot
	SQL      string // for the download; "" if too long for an address
}

func (u *sqlUI) runSQL(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	sql := f.raw("sql")
	began := time.Now()
	ctx, done := web.ClientContext(c)
	defer done()
	r, err := u.queries.Query(ctx, host.Query{SQL: sql, Rows: plottedRows})
	if err != nil {
		return err
	}
	b := found{QueryResult: r, Took: time.Since(began), X: f.text("x", 256), Y: f.text("y", 256), As: f.text("as", 8)}
	if len(sql) <= maxStatement {
		b.SQL = sql
	}
	for _, row := range r.Rows[:min(len(r.Rows), shownRows, shownCells/max(len(r.Columns), 1))] {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = abi.Cut(plain(v), maxCell*4)
		}
		b.Shown = append(b.Shown, cells)
	}
	b.draw()
	return u.write(c, "sql", "found", b)
}

// draw plots column y over column x: points or a line over numbers or times, bars over texts.
func (b *found) draw() {
	at := func(name string) int {
		return slices.IndexFunc(b.Columns, func(c host.QueryColumn) bool { return c.Name == name })
	}
	x, y := at(b.X), at(b.Y)
	if x < 0 || y < 0 {
		return
	}
	label := "Plot of " + b.Y + " over " + b.X
	if b.As == "bars" {
		var of []amount
		for _, row := range b.Rows[:min(len(b.Rows), shownRows)] {
			if v, ok := numeric(row[y]); ok && v >= 0 {
				name := abi.Cut(plain(row[x]), maxCell)
				of = append(of, amount{Value: v, Tone: "accent", Text: name + ": " + short(v)})
			}
		}
		if len(of) > 0 {
			p := barsOf(label, plotWidth, plotHeight, of)
			p.First, p.Last = abi.Cut(plain(b.Rows[0][x]), 40), "to "+short(float64(len(of)))+" bars"
			b.Plot = &p
		}
	} else {
		var points [][2]float64
		for _, row := range b.Rows {
			vx, okx := numeric(row[x])
			vy, oky := numeric(row[y])
			if okx && oky {
				points = append(points, [2]float64{vx, vy})
			}
		}
		if len(points) > 0 {
			p := xy(label, points, b.As != "dots")
			if _, isTime := instant(b.Rows[0][x]); isTime {
				p.First, p.Last = plain(b.Rows[0][x]), plain(b.Rows[len(b.Rows)-1][x])
			}
			b.Plot = &p
		}
	}
	if b.Plot == nil {
		b.Why = "There is nothing to draw: the second column has to hold numbers, and the first one numbers or times, unless bars are asked for."
	}
}

// numeric returns a value as a number; a time counts in seconds.
func numeric(raw json.RawMessage) (float64, bool) {
	var v float64
	if json.Unmarshal(raw, &v) == nil && string(raw) != "null" && finite(v) {
		return v, true
	}
	if t, ok := instant(raw); ok {
		return float64(t.Unix()), true
	}
	return 0, false
}

// instant parses a time or a day.
func instant(raw json.RawMessage) (time.Time, bool) {
	var s string
	if json.Unmarshal(raw, &s) != nil || len(s) > 40 {
		return time.Time{}, false
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, time.DateTime, "2006-01"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// download answers with a query's result as a file, which is recorded in the audit log.
func (u *sqlUI) download(c *fiber.Ctx) error {
	q := web.QueryOf(c)
	sql, format := q.Text("sql", maxStatement), q.OneOf("format", "csv", "csv", "ndjson")
	if err := q.Err(); err != nil {
		return err
	}
	ctx, done := web.ClientContext(c)
	defer done()
	r, err := u.queries.Query(ctx, host.Query{SQL: sql, Rows: downloadRows})
	if err != nil {
		return err
	}
	err = u.audit.Audit(ctx, "records.exported", "query", "done",
		map[string]string{"records": strconv.Itoa(len(r.Rows)), "format": format})
	if err != nil {
		return err
	}
	if format == "csv" {
		web.Attachment(c, "text/csv; charset=utf-8", "query.csv")
		return c.Send(asCSV(r))
	}
	web.Attachment(c, "application/x-ndjson", "query.ndjson")
	text, err := asLines(r)
	if err != nil {
		return err
	}
	return c.Send(text)
}

// asCSV returns CSV whose cells a spreadsheet does not evaluate.
func asCSV(r host.QueryResult) []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	row := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		row[i] = export.Cell(c.Name)
	}
	_ = w.Write(row) // to memory
	for _, values := range r.Rows {
		for i, v := range values {
			if row[i] = plain(v); len(v) > 0 && v[0] == '"' {
				row[i] = export.Cell(row[i])
			}
		}
		_ = w.Write(row)
	}
	w.Flush()
	return out.Bytes()
}

// asLines returns one object per row, with members in column order.
func asLines(r host.QueryResult) ([]byte, error) {
	var out bytes.Buffer
	names := make([][]byte, len(r.Columns))
	for i, c := range r.Columns {
		name, err := json.Marshal(c.Name)
		if err != nil {
			return nil, err
		}
		names[i] = name
	}
	for _, values := range r.Rows {
		out.WriteByte('{')
		for i, v := range values {
			if i > 0 {
				out.WriteByte(',')
			}
			out.Write(names[i])
			out.WriteByte(':')
			out.Write(v)
		}
		out.WriteString("}\n")
	}
	return out.Bytes(), nil
}

// save stores a query under a name, replacing an earlier one.
func (u *sqlUI) save(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	ctx, name, sql := web.Context(c), f.text("name", 64), f.raw("sql")
	switch {
	case !abi.IsSlug(name):
		f.fail("name", "lower case letters, digits, - and _")
	case strings.TrimSpace(sql) == "" || len(sql) > maxSavedBytes:
		f.fail("sql", "a query of at most 100000 bytes")
	}
	if err := f.err(); err != nil {
		return err
	}
	docs, err := u.saved.Documents(ctx, store.DocumentQuery{Kind: store.SavedQueries, Limit: maxSaved})
	if err != nil {
		return err
	}
	if len(docs) >= maxSaved && !slices.ContainsFunc(docs, func(d store.Document) bool { return d.ID == name }) {
		return web.NewProblem(0, "conflict", "There are %d saved queries already. Forget one first.", maxSaved)
	}
	data, err := json.Marshal(savedQuery{SQL: sql, SavedAt: u.now().UTC()})
	if err != nil {
		return err
	}
	if err := u.saved.Write(ctx, store.Write{Kind: store.SavedQueries, ID: name, Data: data}); err != nil {
		return err
	}
	return leave(c, "/ui/data/sql?saved="+name)
}

func (u *sqlUI) forget(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	name := f.text("name", 64)
	if !abi.IsSlug(name) {
		return web.NotFound()
	}
	if err := u.saved.Write(web.Context(c), store.Write{Kind: store.SavedQueries, ID: name}); err != nil {
		return err
	}
	return leave(c, "/ui/data/sql")
}
