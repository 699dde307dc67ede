package api

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// recordQuery selects records of a stream, apart from the page.
type recordQuery struct {
	keys       map[string]bool
	keep       map[string]bool
	match      func(store.Record) bool // without keys; nil: all
	order      store.Order
	descending bool
	deleted    bool
	changes    bool // changesSince was given
	since      uint64
}

// Bounds of a query.
const (
	maxKeys    = 100
	maxFilters = 20
	maxFilter  = 2048
)

func readQuery(c *fiber.Ctx, s recordStream) (*recordQuery, error) {
	in := web.QueryOf(c)
	order := in.OneOf("order", "version", export.Orders...)
	q := &recordQuery{deleted: in.Bool("includeDeleted", false), changes: in.Has("changesSince")}
	q.order, q.descending = export.OrderOf(order)
	find := in.Text("find", export.MaxFind)
	fields, since := in.List("fields"), in.Text("changesSince", 64)
	from, until := in.Time("from"), in.Time("until")
	updated := timeRange{in.Time("updatedFrom"), in.Time("updatedUntil")}
	if err := in.Err(); err != nil {
		return nil, err
	}
	keys, err := repeated(c, "key", maxKeys, abi.MaxKeyBytes)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if q.keys == nil {
			q.keys = map[string]bool{}
		}
		q.keys[k] = true
		q.keys[canonicalKey(k)] = true
	}
	if len(fields) > 0 {
		if err := checkFields(fields, s.spec); err != nil {
			return nil, err
		}
		q.keep = map[string]bool{}
		for _, f := range append(fields, s.spec.PrimaryKey...) {
			q.keep[f] = true
		}
	}
	texts, err := repeated(c, "filter", maxFilters, maxFilter)
	if err != nil {
		return nil, err
	}
	filters, err := readFilters(texts, s.spec)
	if err != nil {
		return nil, err
	}
	if !from.IsZero() || !until.IsZero() {
		if s.spec.ConsentTimeField == "" {
			return nil, unsupported(s.spec)
		}
		filters = append(filters, timeFilter(s.spec.ConsentTimeField, timeRange{from, until})...)
	}
	q.match = export.Both(matcher(filters, updated), export.Find(find))
	if q.changes {
		q.deleted = true
		if q.since, err = s.since(since); err != nil {
			return nil, err
		}
		if q.order != store.ByVersion || q.descending {
			return nil, web.Invalid(web.Field{Path: "query.order", Rule: "version, with changesSince"})
		}
	}
	return q, nil
}

// checkFields refuses fields that look like misspellings of declared ones. Other undeclared fields
// are allowed, since a schema need not list all.
func checkFields(fields []string, spec abi.StreamSpec) error {
	known := export.SchemaFields(spec)
	for _, f := range fields {
		if near := abi.Nearest(f, known); near != "" && !slices.Contains(known, f) {
			return web.Invalid(web.Field{Path: "query.fields",
				Rule: "fields of the stream; did you mean " + near + "?"})
		}
	}
	return nil
}

// reproducible refuses options under which applying the changes would not reproduce the stream,
// since a record that no longer matches would never be reported as gone. An export is a file
// of its own, so only a query for changes is refused.
func (q *recordQuery) reproducible() error {
	if q.changes && q.match != nil {
		return web.Invalid(web.Field{Path: "query.changesSince",
			Rule: "given without filter, find, from, until, updatedFrom and updatedUntil"})
	}
	return nil
}

// store returns the query in the store's form.
func (q *recordQuery) store(s recordStream) store.RecordQuery {
	return store.RecordQuery{Connection: s.connection, Stream: s.name, Order: q.order, Descending: q.descending,
		After:   q.since,
		Deleted: q.deleted, Match: q.matchAll()}
}

// matchAll returns match, restricted to keys if keys were given.
func (q *recordQuery) matchAll() func(store.Record) bool {
	if q.keys == nil {
		return q.match
	}
	return export.Both(func(r store.Record) bool { return q.keys[r.Key] }, q.match)
}

// repeated returns copies of the values of a repeatable parameter.
func repeated(c *fiber.Ctx, name string, most, bytes int) ([]string, error) {
	var out []string
	for _, v := range c.Context().QueryArgs().PeekMulti(name) {
		if len(v) == 0 || len(v) > bytes || !utf8.Valid(v) {
			return nil, web.Invalid(web.Field{Path: "query." + name,
				Rule: fmt.Sprintf("UTF-8 text of 1 to %d bytes", bytes)})
		}
		out = append(out, string(v))
	}
	if len(out) > most {
		return nil, web.Invalid(web.Field{Path: "query." + name, Rule: fmt.Sprintf("given at most %d times", most)})
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// timeRange is a half-open time span; a zero bound is unlimited.
type timeRange struct{ from, until time.Time }

func (b timeRange) open() bool { return b.from.IsZero() && b.until.IsZero() }

func (b timeRange) holds(t time.Time) bool {
	return (b.from.IsZero() || !t.Before(b.from)) && (b.until.IsZero() || t.Before(b.until))
}
