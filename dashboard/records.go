package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// recordsPage bounds the records on a page, columns the fields of each.
const (
	recordsPage = 50
	columns     = 5
	maxCell     = 120 // runes
	maxFind     = 256 // bytes
)

// recordsBody is the explorer: the choices, and a page of one stream.
type recordsBody struct {
	Connections []host.Connection
	Connection  string
	Streams     []store.StreamStats
	Stream      string
	Find        string
	Order       string
	Descending  bool
	Deleted     bool
	Columns     []string
	Rows        []recordRow
	Next        string   // where to continue; "" at the end
	Total       uint64   // in the stream, before the search
	Asked       bool     // a stream was selected
	Export      string   // query that exports what is shown
	Chosen      []string // selected columns; none: the common ones
	Filtered    bool
	Matching    uint64     // matching records, at most maxMatching+1
	SQL         string     // the view as a query, "" without filters
	Wrong       string     // a filter that was left out, and why
	By          string     // time column for the histogram
	More        url.Values // query of this page
}

type recordRow struct {
	store.Record
	Cells []string
}

// recordUI serves the explorer of records and the page of one.
type recordUI struct {
	*frame
	connections host.Connections
	stored      store.Records
	queries     host.Queries
	files       host.Files
}

func (u *recordUI) routes() []web.Route {
	return []web.Route{
		part("/ui/data/filters", u.filters),
		part("/ui/data/record", u.drawer),
		page("/ui/records", u.listRecords),
		page("/ui/record", u.showRecord),
		page("/ui/files", u.listFiles),
	}
}

// recordsOf parses the query of the explorer.
func (u *recordUI) recordsOf(c *fiber.Ctx) (recordsBody, error) {
	q := web.QueryOf(c)
	b := recordsBody{Connection: q.Text("connection", 64), Stream: q.Text("stream", 256), Find: q.Text("find", maxFind),
		Order:   q.OneOf("order", "-version", "version", "-version", "key", "-key", "emitted", "-emitted"),
		Deleted: q.Bool("deleted", false), By: q.Text("by", 128)}
	for _, name := range c.Context().QueryArgs().PeekMulti("col") {
		if len(b.Chosen) < offered && len(name) <= 128 && isText(string(name)) {
			b.Chosen = append(b.Chosen, string(name))
		}
	}
	return b, q.Err()
}

func (u *recordUI) listRecords(c *fiber.Ctx) error {
	b, err := u.recordsOf(c)
	if err != nil {
		return err
	}
	conditions, err := conditionsOf(c)
	if err != nil {
		return err
	}
	b.Filtered = len(conditions) > 0
	q := web.QueryOf(c)
	after := q.Text("after", 4096)
	if err := q.Err(); err != nil {
		return err
	}
	ctx := web.Context(c)
	if b.Connections, err = u.connections.Connections(ctx); err != nil {
		return err
	}
	slices.SortFunc(b.Connections, byName)
	if b.Connection == "" && len(b.Connections) > 0 {
		b.Connection = b.Connections[0].ConnectionID
	}
	if b.Connection != "" {
		if b.Streams, err = u.stored.Streams(ctx, store.ConnectionID(b.Connection)); err != nil {
			return err
		}
	}
	if b.Stream == "" && len(b.Streams) > 0 {
		b.Stream = string(b.Streams[0].Stream)
	}
	for _, s := range b.Streams {
		if string(s.Stream) == b.Stream {
			if b.Asked, b.Total = true, s.Live; b.Deleted {
				b.Total += s.Tombstones
			}
		}
	}
	switch {
	case b.Asked && b.Filtered:
		skip, _ := strconv.ParseInt(after, 10, 64)
		err = u.readView(ctx, &b, conditions, min(max(skip, 0), downloadRows))
	case b.Asked:
		err = u.readPage(c, &b, after)
	}
	if err != nil {
		return err
	}
	b.More = b.address(conditions)
	if b.Deleted {
		b.More.Set("deleted", "true")
	}
	known := b.Asked && b.Find == "" && after == "" && !b.Filtered && len(b.Chosen) == 0
	return u.show(c, "records", content{Title: "Records", Nav: "data", Known: known, Body: b})
}

// readPage reads the records that the explorer shows.
func (u *recordUI) readPage(c *fiber.Ctx, b *recordsBody, after string) error {
	order, descending := strings.CutPrefix(b.Order, "-")
	b.Descending = descending
	q := store.RecordQuery{Connection: store.ConnectionID(b.Connection), Stream: store.Stream(b.Stream),
		Order:      store.Order(order),
		Descending: descending, Deleted: b.Deleted, Limit: recordsPage}
	if order == "version" {
		q.After, _ = strconv.ParseUint(after, 10, 64)
	} else {
		q.AfterKey = after
	}
	q.Match = export.Find(b.Find)
	b.Export = b.exported()
	var records []store.Record
	for range 20 { // a page of a search may be empty and not be the last
		p, err := u.stored.Records(web.Context(c), q)
		if err != nil {
			return err
		}
		records = append(records, p.Records...)
		q.After, q.AfterKey = p.After, p.AfterKey
		if b.Next = ""; p.More {
			if b.Next = p.AfterKey; order == "version" {
				b.Next = strconv.FormatUint(p.After, 10)
			}
		}
		if !p.More || len(records) >= recordsPage/2 {
			break
		}
	}
	b.table(records)
	return nil
}

// Further returns the address of the next page.
func (b recordsBody) Further() string {
	q := maps.Clone(b.More)
	q.Set("after", b.Next)
	return "/ui/records?" + q.Encode()
}

// ExportAs returns the address of an export of what is shown. A connector may have chosen any name for the stream.
func (b recordsBody) ExportAs(format string) string {
	return "/v1/connections/" + url.PathEscape(b.Connection) + "/streams/" + url.PathEscape(b.Stream) + "/export?format=" +
		format + "&" + b.Export
}

// exported returns the query for exporting what is shown by the API.
func (b *recordsBody) exported() string {
	q := url.Values{"order": {strings.Replace(b.Order, string(store.ByEmitted), "time", 1)}}
	if b.Find != "" {
		q.Set("find", b.Find)
	}
	if b.Deleted {
		q.Set("includeDeleted", "true")
	}
	return q.Encode()
}

// Counted says how many records there are and, in a search, how many of them the page shows.
func (b recordsBody) Counted() string {
	all := plural(b.Total, "record")
	switch {
	case b.Matching > maxMatching:
		return "More than " + count(maxMatching) + " of " + all
	case b.Filtered:
		return count(b.Matching) + " of " + all
	case b.Find == "":
		return all
	case b.Next != "":
		return "More than " + strconv.Itoa(len(b.Rows)) + " of " + all
	}
	return strconv.Itoa(len(b.Rows)) + " of " + all
}

// table selects the fields that most records have and fills in the cells.
func (b *recordsBody) table(records []store.Record) {
	members := make([]map[string]json.RawMessage, len(records))
	seen := map[string]int{}
	for i, r := range records {
		_ = json.Unmarshal(r.Data, &members[i]) // a tombstone has none
		for name, v := range members[i] {
			if len(v) > 0 && plain(v) != records[i].Key && v[0] != '{' && v[0] != '[' && string(v) != "null" {
				seen[name]++
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(seen), func(x, y string) int {
		common := func(name string) int { return min(seen[name]*2, len(records)) } // half of them is enough
		return cmp.Or(cmp.Compare(common(y), common(x)), cmp.Compare(prominence(y), prominence(x)), cmp.Compare(x, y))
	})
	if b.Columns = names[:min(len(names), columns)]; len(b.Chosen) > 0 {
		b.Columns = b.Chosen
	}
	for i, r := range records {
		row := recordRow{Record: r}
		for _, name := range b.Columns {
			row.Cells = append(row.Cells, cell(members[i][name]))
		}
		b.Rows = append(b.Rows, row)
	}
}

// cell returns a value as shown in the table, with times shortened.
func cell(raw json.RawMessage) string {
	s := plain(raw)
	if at := moment(s); !at.IsZero() {
		return stamp(at)
	}
	return abi.Cut(s, maxCell)
}

// prominence ranks fields that help to tell records apart: those that are called so before those that contain the word.
func prominence(name string) int {
	words := []string{"description", "body", "author", "status", "kind", "amount", "date", "at", "summary", "subject",
		"title", "name"}
	if i := slices.Index(words, name); i >= 0 {
		return len(words) + i + 1
	}
	return 1 + slices.IndexFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// recordBody is everything that is known of a record.
type recordBody struct {
	store.Record
	Connection string
	Fields     []fact
	Files      []shownFile
	MoreFiles  bool
}

// A shownFile is a file of a record on its page.
type shownFile struct {
	Title, MediaType string
	Size             int64
	At               string // route of its content
	View             string // media type to show it as; "" if it cannot be shown
}

// maxShown bounds the files on a record's page.
const maxShown = 12

// filesOf adds the files of a record. Their types are detected from their first bytes.
func (u *recordUI) filesOf(ctx context.Context, b *recordBody) error {
	id := store.ConnectionID(b.Connection)
	page, err := u.files.Files(ctx, store.FileQuery{Connection: id, Stream: b.Stream, Key: b.Key})
	if err != nil {
		return err
	}
	for i, f := range page.Files {
		if b.MoreFiles = i == maxShown; b.MoreFiles {
			break
		}
		s := shownFile{Title: cmp.Or(f.Name, f.Field), MediaType: f.MediaType, Size: f.Size,
			At: "/v1/connections/" + url.PathEscape(b.Connection) + "/files/" + strings.TrimPrefix(string(f.Digest), "sha256:")}
		content, _, err := u.files.OpenFile(ctx, id, f.Digest)
		if err == nil {
			if s.View, err = web.Viewable(content, f.Size); err != nil {
				s.View = ""
			}
			_ = content.Close() // read only
		}
		b.Files = append(b.Files, s) // an unreadable file is offered for download, which reports why
	}
	return nil
}

func (u *recordUI) lookRecord(c *fiber.Ctx) (b recordBody, err error) {
	q := web.QueryOf(c)
	connection, stream, key := q.Text("connection", 64), q.Text("stream", 256), q.Text("key", 64<<10)
	if err := q.Err(); err != nil {
		return b, err
	}
	r, err := u.stored.Record(web.Context(c), store.ConnectionID(connection), store.Stream(stream), key)
	if err != nil {
		return b, err
	}
	b = recordBody{Record: r, Connection: connection}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(r.Data, &members) // a tombstone has none
	for _, name := range slices.Sorted(maps.Keys(members)) {
		b.Fields = append(b.Fields, fact{name, plain(members[name])})
	}
	return b, u.filesOf(web.Context(c), &b)
}

func (u *recordUI) showRecord(c *fiber.Ctx) error {
	b, err := u.lookRecord(c)
	if err != nil {
		return err
	}
	return u.show(c, "record", content{Title: "Record", Nav: "data", Known: true, Body: b})
}

// drawer serves a record beside the list.
func (u *recordUI) drawer(c *fiber.Ctx) error {
	b, err := u.lookRecord(c)
	if err != nil {
		return err
	}
	return u.write(c, "records", "drawer", b)
}
