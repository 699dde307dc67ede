package api

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// recordPage is a page of records. Continuing from NextChangesSince misses no change since the
// first page was read.
type recordPage struct {
	Data             []export.Line `json:"data"`
	NextCursor       *string       `json:"nextCursor"`
	NextChangesSince string        `json:"nextChangesSince"`
}

// recordAPI has the routes of streams and their records.
type recordAPI struct {
	find      lookup
	records   store.Records
	manifests store.Connections
	audit     host.AuditLog
	places    *exportSlots
	log       *slog.Logger
}

func (a *recordAPI) routes() []route {
	of := "/v1/connections/:connectionId/streams"
	which := []parameter{
		{name: "key", typ: "string", text: "Only these keys; a compound one as its JSON array. At most 100.",
			repeat: true},
		{name: "fields", typ: "string", text: "Members of the data, with commas; key fields are always there."},
		{name: "filter", typ: "string",
			text: "field:op:value with eq, ne, gt, gte, lt, lte, in or exists; all must hold.", repeat: true},
		{name: "find", typ: "string",
			text: "A text that the key or the data contains, whatever its case. At most 256 bytes."},
		{name: "from", typ: "string", text: "Consent time, inclusive, RFC 3339."},
		{name: "until", typ: "string", text: "Consent time, exclusive."},
		{name: "updatedFrom", typ: "string", text: "ingestedAt, inclusive."},
		{name: "updatedUntil", typ: "string", text: "ingestedAt, exclusive."},
		{name: "order", typ: "string", text: "version by default; time is emittedAt.", words: export.Orders},
		{name: "includeDeleted", typ: "boolean", text: "Tombstones too."},
		{name: "changesSince", typ: "string",
			text: "What changed behind a nextChangesSince, tombstones included; empty for everything."},
	}
	return documented("api.md#records-streams-export-search", []route{
		{Route: web.Route{Method: "GET", Path: of, Scope: access.RecordsRead, Handle: a.listStreams},
			summary: "The streams of a connection", answer: streams{}},
		{Route: web.Route{Method: "GET", Path: of + "/:stream/records", Scope: access.RecordsRead,
			Handle: a.listRecords},
			summary: "Records of a stream, or what changed", answer: recordPage{}, query: slices.Concat(which, paging),
			codes: []string{"unsupported_filter", "invalid_cursor", "cursor_expired"}},
		{Route: web.Route{Method: "GET", Path: of + "/:stream/records/:recordKey", Scope: access.RecordsRead,
			Handle: a.getRecord},
			summary: "One record, or its tombstone", answer: export.Line{}},
		{Route: web.Route{Method: "GET", Path: of + "/:stream/export", Scope: access.RecordsRead, Stream: true,
			Handle: a.exportRecords},
			summary: "The records of a stream as one file, as of one version", media: ndjson + ", " + csvType,
			query: slices.Concat([]parameter{{name: "format", typ: "string", text: "ndjson by default.",
				words: []string{"ndjson", "csv"}}}, which),
			codes: []string{"unsupported_filter", "cursor_expired", "rate_limited"}},
	})
}

// Sizes of a page of records.
const (
	recordsPage = 100
	recordsMost = 1000
	// lookedAt bounds the store's pages that one answer reads while its filter matches nothing.
	lookedAt = 10
)

func (a *recordAPI) listRecords(c *fiber.Ctx) error {
	s, err := a.recordStream(c)
	if err != nil {
		return err
	}
	page, err := web.PageOf(c, recordsPage, recordsMost)
	if err != nil {
		return err
	}
	q, err := readQuery(c, s)
	if err != nil {
		return err
	}
	if err := q.reproducible(); err != nil {
		return err
	}
	at, err := parsePosition(page.After)
	if err != nil {
		return err
	}
	if len(q.keys) > 0 && !q.changes {
		return a.recordsOfKeys(c, s, q, page.Limit, at)
	}
	sq := q.store(s)
	sq.Limit = page.Limit
	if page.After != "" {
		sq.After, sq.AfterKey = at.after, at.key
	}
	var found store.RecordPage
	for range lookedAt {
		if found, err = a.records.Records(web.Context(c), sq); err != nil {
			return err
		}
		if len(found.Records) > 0 || !found.More {
			break
		}
		sq.After, sq.AfterKey = found.After, found.AfterKey
	}
	since := found.Version
	switch {
	case q.changes && found.More:
		since = found.After
	case !q.changes && page.After != "":
		since = at.version // as of the first page
	}
	next := ""
	if found.More {
		next = listPosition{version: since, after: found.After, key: found.AfterKey}.String()
	}
	return q.answer(c, s, found.Records, next, since)
}

func (q *recordQuery) answer(c *fiber.Ctx, s recordStream, records []store.Record, next string, since uint64) error {
	out := recordPage{Data: []export.Line{}, NextCursor: web.NextCursor(c, next), NextChangesSince: s.point(since)}
	for _, r := range records {
		r, err := export.Only(r, q.keep)
		if err != nil {
			return err
		}
		out.Data = append(out.Data, export.LineOf(s.connection, r))
	}
	return web.JSON(c, 200, out)
}

// recordsOfKeys looks up keys instead of reading the stream.
func (a *recordAPI) recordsOfKeys(c *fiber.Ctx, s recordStream, q *recordQuery, limit int, at listPosition) error {
	newest, err := a.records.Records(web.Context(c), store.RecordQuery{Connection: s.connection, Stream: s.name,
		Descending: true, Deleted: true, Limit: 1})
	if err != nil {
		return err
	}
	var records []store.Record
	for key := range q.keys {
		r, err := a.records.Record(web.Context(c), s.connection, s.name, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if (q.deleted || !r.Deleted) && (q.match == nil || q.match(r)) {
			records = append(records, r)
		}
	}
	slices.SortFunc(records, q.compare)
	since, next := newest.Version, ""
	if at.version > 0 {
		since = at.version
	}
	records = records[min(at.after, uint64(len(records))):]
	if len(records) > limit {
		records = records[:limit]
		next = listPosition{version: since, after: at.after + uint64(limit)}.String()
	}
	return q.answer(c, s, records, next, since)
}

// compare orders records in memory by the query's order.
func (q *recordQuery) compare(x, y store.Record) int {
	n := 0
	switch q.order {
	case store.ByKey:
		n = cmp.Compare(x.Key, y.Key)
	case store.ByEmitted:
		n = cmp.Or(x.EmittedAt.Compare(y.EmittedAt), cmp.Compare(x.Key, y.Key))
	default:
		n = cmp.Compare(x.Version, y.Version)
	}
	if q.descending {
		return -n
	}
	return n
}

// A listPosition is where a page ended, as stored in cursors.
type listPosition struct {
	version uint64 // of the stream when the first page was read
	after   uint64
	key     string
}

func (p listPosition) String() string {
	return strconv.FormatUint(p.version, 10) + " " + strconv.FormatUint(p.after, 10) + " " + p.key
}

func parsePosition(text string) (p listPosition, err error) {
	if text == "" {
		return p, nil
	}
	parts := strings.SplitN(text, " ", 3)
	if len(parts) == 3 {
		var bad1, bad2 error
		p.version, bad1 = strconv.ParseUint(parts[0], 10, 64)
		p.after, bad2 = strconv.ParseUint(parts[1], 10, 64)
		p.key = parts[2]
		if bad1 == nil && bad2 == nil {
			return p, nil
		}
	}
	return p, web.NewProblem(0, "invalid_cursor", "The cursor is not one of this query. Read from the beginning.")
}

// getRecord answers with a record or its tombstone. A compound key may be spelled in any way that
// means the same array.
func (a *recordAPI) getRecord(c *fiber.Ctx) error {
	s, err := a.recordStream(c)
	if err != nil {
		return err
	}
	key, err := web.Param(c, "recordKey")
	if err != nil {
		return err
	}
	r, err := a.records.Record(web.Context(c), s.connection, s.name, key)
	if errors.Is(err, store.ErrNotFound) {
		if canonical := canonicalKey(key); canonical != key {
			r, err = a.records.Record(web.Context(c), s.connection, s.name, canonical)
		}
	}
	if err != nil {
		return err
	}
	return web.JSON(c, 200, export.LineOf(s.connection, r))
}

// canonicalKey returns the store's spelling of a compound key, and other keys unchanged.
func canonicalKey(key string) string {
	v, err := strictjson.Parse([]byte(key), strictjson.ParseOptions{AnyKind: true})
	if err != nil || !v.Is(strictjson.KindArray) {
		return key
	}
	canonical, _, ok := abi.CanonicalKey(nil, v.Raw)
	if !ok {
		return key
	}
	return string(canonical)
}
