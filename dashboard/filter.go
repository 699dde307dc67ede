package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// Bounds of filters: fields offered in the form, fields searched for a text, and bars of
// the histogram.
const (
	offered    = 24
	searched   = 4 * offered
	maxFilters = 3 * offered
	timeBars   = 60
	maxDays    = 5000 // days that a histogram reads
)

// A condition is a filled-in field of the form: is, min or max of a column.
type condition struct{ Kind, Column, Value string }

// conditionsOf parses the filters of a query such as min.amount=3.
func conditionsOf(c *fiber.Ctx) ([]condition, error) {
	var out []condition
	for k, v := range c.Context().QueryArgs().All() {
		kind, column, ok := strings.Cut(string(k), ".")
		value := strings.TrimSpace(string(v))
		if !ok || value == "" || !slices.Contains([]string{"is", "min", "max"}, kind) {
			continue
		}
		if len(value) > maxFind || len(column) > 128 || !isText(column+value) || len(out) == maxFilters {
			return nil, web.Invalid(web.Field{Path: "query", Rule: "at most 72 filters of 256 bytes"})
		}
		out = append(out, condition{kind, column, value})
	}
	return out, nil
}

// A recordView is a filtered stream in SQL.
type recordView struct {
	table host.Table
	where []string
	wrong string // explains a filter that cannot be applied
}

// committed is the column with the time at which a record was stored, which every table has.
const committed = "_committed_at"

// isText reports whether a text may be part of a statement.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// quoted returns a name as an SQL identifier, and literal a text as an SQL literal.
func quoted(name string) string  { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }

// viewOf returns the table of a stream under conditions. Conditions on unknown columns are left
// out.
func viewOf(ctx context.Context, queries host.Queries, connection store.ConnectionID, stream string,
	conditions []condition, find string) (v recordView, err error) {
	tables, err := queries.Tables(ctx, []store.ConnectionID{connection})
	if err != nil {
		return v, err
	}
	i := slices.IndexFunc(tables, func(t host.Table) bool { return t.Stream == stream })
	if i < 0 {
		return v, store.ErrNotFound
	}
	v.table = tables[i]
	for _, c := range conditions {
		if sql, ok := c.sql(v.typeOf(c.Column)); ok {
			v.where = append(v.where, sql)
		} else {
			v.wrong = "The filter of " + c.Column + " was left out: " + c.rule(v.typeOf(c.Column)) + "."
		}
	}
	if find != "" {
		// One call for all columns: a statement may have so many.
		all := "concat_ws(char(10), _key"
		for _, c := range v.table.Columns[:min(len(v.table.Columns), searched)] {
			all += ", " + quoted(c.Name)
		}
		v.where = append(v.where, contains(all+")", find))
	}
	return v, nil
}

// typeOf returns the type of a column, or "" if there is no such column.
func (v recordView) typeOf(column string) string {
	if column == committed {
		return "time"
	}
	for _, c := range v.table.Columns {
		if c.Name == column {
			return cmp.Or(c.Type, "text")
		}
	}
	return ""
}

func contains(column, text string) string {
	return "instr(lower(CAST(" + column + " AS TEXT)), lower(" + literal(text) + ")) > 0"
}

// rule explains what a filter on a type has to be.
func (c condition) rule(typ string) string {
	switch typ {
	case "":
		return "there is no such field"
	case "integer", "number":
		return "it is a number"
	case "time":
		return "it is a day such as 2026-01-31"
	case "boolean":
		return "it is true or false"
	}
	return "it is a text"
}

// sql returns the condition on a column of a type. It reports false if the value does not fit the
// type.
func (c condition) sql(typ string) (string, bool) {
	name := quoted(c.Column)
	switch typ {
	case "integer", "number":
		n, err := strconv.ParseFloat(c.Value, 64)
		op := map[string]string{"min": " >= ", "max": " <= ", "is": " = "}[c.Kind]
		return name + op + strconv.FormatFloat(n, 'g', -1, 64), err == nil && finite(n)
	case "time":
		day, err := time.Parse(time.DateOnly, c.Value)
		if c.Kind == "max" {
			return name + " < " + literal(day.AddDate(0, 0, 1).Format(time.DateOnly)), err == nil
		}
		return name + " >= " + literal(c.Value), err == nil && c.Kind == "min"
	case "boolean":
		return name + " = " + map[string]string{"true": "1", "false": "0"}[c.Value],
			c.Kind == "is" && (c.Value == "true" || c.Value == "false")
	case "":
		return "", false
	}
	return contains(name, c.Value), c.Kind == "is"
}

// from returns the FROM clause of the view.
func (v recordView) from() string {
	if len(v.where) == 0 {
		return " FROM " + v.table.Name
	}
	return " FROM " + v.table.Name + " WHERE " + strings.Join(v.where, " AND ")
}

// maxMatching bounds how many matching records are counted, so that a page of a million records
// need not wait for a count.
const maxMatching = 1000

// readView fills the page with the matching records.
func (u *recordUI) readView(ctx context.Context, b *recordsBody, conditions []condition, skip int64) error {
	v, err := viewOf(ctx, u.queries, store.ConnectionID(b.Connection), b.Stream, conditions, b.Find)
	if err != nil {
		return err
	}
	b.Wrong = v.wrong
	order, descending := strings.CutPrefix(b.Order, "-")
	b.Descending = descending
	by := map[string]string{"key": "_key"}[order]
	by = cmp.Or(by, "_version")
	if descending {
		by += " DESC"
	}
	// One query finds the page and counts, unless the page lies beyond what is counted.
	from, most := int64(0), int64(maxMatching+1)
	if skip+recordsPage >= most {
		from, most = skip, recordsPage+1
	}
	keys, err := u.queries.Query(ctx, host.Query{Rows: int(most),
		SQL: fmt.Sprintf("SELECT _key%s ORDER BY %s LIMIT %d OFFSET %d", v.from(), by, most, from)})
	if err != nil {
		return err
	}
	if n := len(keys.Rows); n > 0 {
		b.Matching = uint64(from) + uint64(n)
	}
	if keys.Truncated { // long keys reached the size limit
		b.Matching = maxMatching + 1
	}
	keys.Rows = keys.Rows[min(skip-from, int64(len(keys.Rows))):]
	var records []store.Record
	for _, row := range keys.Rows[:min(len(keys.Rows), recordsPage)] {
		var key string
		if len(row) != 1 || json.Unmarshal(row[0], &key) != nil {
			continue
		}
		r, err := u.stored.Record(ctx, store.ConnectionID(b.Connection), store.Stream(b.Stream), key)
		if err != nil {
			continue // deleted meanwhile
		}
		records = append(records, r)
	}
	if b.Next = ""; len(keys.Rows) > recordsPage {
		b.Next = strconv.FormatInt(skip+recordsPage, 10)
	}
	if sql := "SELECT *" + v.from() + " ORDER BY " + by; len(sql) <= maxStatement {
		b.SQL = sql
	}
	b.table(records)
	return nil
}

// A filterField is a column in the filter form.
type filterField struct {
	Name, Type    string
	Is, Min, Max  string
	Chosen, Taken bool // Chosen: a column of the table; Taken: it has a filter
}

// filterBody is the filter form with the histogram.
type filterBody struct {
	recordsBody
	Fields []filterField
	Times  []string // columns for the histogram
	Plot   *plot
	Open   bool
}

// filters serves the part of the page that needs the copy for queries.
func (u *recordUI) filters(c *fiber.Ctx) error {
	b, err := u.recordsOf(c)
	if err != nil {
		return err
	}
	f := filterBody{recordsBody: b}
	conditions, err := conditionsOf(c)
	if err != nil {
		return err
	}
	ctx, done := web.ClientContext(c)
	defer done()
	v, err := viewOf(ctx, u.queries, store.ConnectionID(b.Connection), b.Stream, conditions, b.Find)
	if err != nil {
		return err
	}
	f.Open = len(conditions) > 0
	f.offer(v, conditions)
	if !slices.Contains(f.Times, f.By) {
		f.By = f.Times[len(f.Times)-1]
	}
	if f.Plot, err = u.histogram(ctx, v, f.By, b.address(conditions)); err != nil {
		return err
	}
	return u.write(c, "records", "filters", f)
}

// offer fills in the fields of the form, including the time of storing.
func (f *filterBody) offer(v recordView, conditions []condition) {
	f.Times = []string{committed}
	columns := append(slices.Clone(v.table.Columns[:min(len(v.table.Columns), offered)]),
		host.QueryColumn{Name: committed, Type: "time"})
	for _, c := range columns {
		x := filterField{Name: c.Name, Type: cmp.Or(c.Type, "text"), Chosen: slices.Contains(f.Chosen, c.Name)}
		for _, have := range conditions {
			if have.Column == c.Name {
				*map[string]*string{"is": &x.Is, "min": &x.Min, "max": &x.Max}[have.Kind] = have.Value
				x.Taken = true
			}
		}
		if x.Type == "time" && c.Name != committed {
			f.Times = append(f.Times, c.Name)
		}
		f.Fields = append(f.Fields, x)
	}
}

// address returns the query string of the page with conditions.
func (b recordsBody) address(conditions []condition) url.Values {
	q := url.Values{"connection": {b.Connection}, "stream": {b.Stream}, "order": {b.Order}}
	if b.Find != "" {
		q.Set("find", b.Find)
	}
	if len(b.Chosen) > 0 {
		q["col"] = b.Chosen
	}
	if b.By != "" {
		q.Set("by", b.By)
	}
	for _, c := range conditions {
		q.Set(c.Kind+"."+c.Column, c.Value)
	}
	return q
}

// histogram counts the records of a view by day and draws as many bars as fit. Each bar links to
// its records.
func (u *recordUI) histogram(ctx context.Context, v recordView, by string, at url.Values) (*plot, error) {
	day := "substr(" + quoted(by) + ", 1, 10)"
	r, err := u.queries.Query(ctx,
		host.Query{Rows: maxDays, SQL: "SELECT " + day + ", count(*)" + v.from() + " GROUP BY 1 ORDER BY 1"})
	if err != nil {
		return nil, err
	}
	type counted struct {
		day time.Time
		n   float64
	}
	var days []counted
	for _, row := range r.Rows {
		t, ok := instant(row[0])
		n, isNumber := numeric(row[1])
		if ok && isNumber && t.Year() > 0 && t.Year() < 10000 {
			days = append(days, counted{t, n})
		}
	}
	if len(days) == 0 {
		return nil, nil
	}
	first, last := days[0].day, days[len(days)-1].day
	span := int(last.Sub(first).Hours()/24) + 1
	wide := (span + timeBars - 1) / timeBars
	of := make([]amount, (span+wide-1)/wide)
	for _, d := range days {
		of[int(d.day.Sub(first).Hours()/24)/wide].Value += d.n
	}
	for i := range of {
		from := first.AddDate(0, 0, i*wide)
		until := from.AddDate(0, 0, wide-1)
		of[i].Tone, of[i].Text = "accent", plural(int64(of[i].Value), "record")+", "+from.Format("2 Jan 2006")
		if wide > 1 {
			of[i].Text += " to " + until.Format("2 Jan 2006")
		}
		if of[i].Value > 0 {
			at.Set("min."+by, from.Format(time.DateOnly))
			at.Set("max."+by, until.Format(time.DateOnly))
			at.Set("by", by)
			of[i].Link = "/ui/records?" + at.Encode()
		}
	}
	p := barsOf("Records by time", plotWidth, plotHeight, of)
	p.First, p.Last = first.Format("2 Jan 2006"), last.Format("2 Jan 2006")
	return &p, nil
}
