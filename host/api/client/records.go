package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Streams are the counters of the streams of a connection that ever held a record, by
// name, as the store has them.
func (c recordClient) Streams(ctx context.Context, id store.ConnectionID) (out []store.StreamStats, err error) {
	var got struct {
		Data []struct {
			Stream      store.Stream `json:"stream"`
			Records     uint64       `json:"records"`
			Deleted     uint64       `json:"deleted"`
			LastVersion uint64       `json:"lastVersion"`
		} `json:"data"`
	}
	err = c.get(ctx, at("connections", string(id), "streams"), nil, &got)
	for _, s := range got.Data {
		if s.LastVersion > 0 {
			out = append(out, store.StreamStats{Stream: s.Stream, Live: s.Records, Tombstones: s.Deleted, LastVersion: s.LastVersion})
		}
	}
	slices.SortFunc(out, func(a, b store.StreamStats) int { return cmp.Compare(a.Stream, b.Stream) })
	return out, err
}

// A record is a record as the API shows it.
type record struct {
	Stream     store.Stream    `json:"stream"`
	Key        json.RawMessage `json:"key"` // a string, or an array of strings
	Data       json.RawMessage `json:"data"`
	EmittedAt  time.Time       `json:"emittedAt"`
	IngestedAt time.Time       `json:"ingestedAt"`
	Version    uint64          `json:"version"`
	RunID      store.RunID     `json:"runId"`
	Deleted    bool            `json:"deleted"`
}

// stored is the record as the store has it.
func (r record) stored() (store.Record, error) {
	out := store.Record{
		Stream: r.Stream, Data: r.Data, EmittedAt: r.EmittedAt, IngestedAt: r.IngestedAt, Version: r.Version, RunID: r.RunID, Deleted: r.Deleted,
		Key: string(r.Key), Compound: len(r.Key) > 0 && r.Key[0] == '[',
	}
	if out.Compound {
		return out, nil
	}
	if err := json.Unmarshal(r.Key, &out.Key); err != nil {
		return out, fmt.Errorf("read key of a record of %s: %w", r.Stream, err)
	}
	return out, nil
}

// A recordPage is a page of records.
type recordPage struct {
	Data       []record `json:"data"`
	NextCursor *string  `json:"nextCursor"`
	// NextChangesSince is where to go on from, for changesSince.
	NextChangesSince string `json:"nextChangesSince"`
}

func (p recordPage) more() bool { return p.NextCursor != nil && *p.NextCursor != "" }

// into adds the records that a query does not drop to a page.
func (p recordPage) into(page *store.RecordPage, q store.RecordQuery) error {
	for _, r := range p.Data {
		out, err := r.stored()
		if err != nil {
			return err
		}
		if (q.Deleted || !r.Deleted) && (q.Match == nil || q.Match(out)) {
			page.Records = append(page.Records, out)
		}
	}
	page.More = p.more()
	return nil
}

// Records is a page of the records of a stream, as a store reads one; at most 1,000.
func (c recordClient) Records(ctx context.Context, q store.RecordQuery) (page store.RecordPage, err error) {
	if cmp.Or(q.Order, store.ByVersion) != store.ByVersion || q.Descending {
		return c.ordered(ctx, q)
	}
	page.After = q.After
	for {
		got, err := c.changes(ctx, q.Connection, q.Stream, page.After, q.Limit)
		if err != nil {
			return page, err
		}
		if n := len(got.Data); n > 0 {
			page.After = got.Data[n-1].Version
		}
		if err := got.into(&page, q); err != nil || len(page.Records) > 0 || !page.More {
			return page, err
		}
	}
}

// ordered pages in any order. The place where a page ends is the host's cursor.
func (c recordClient) ordered(ctx context.Context, q store.RecordQuery) (page store.RecordPage, err error) {
	chosen := chosenBy(q)
	if q.AfterKey != "" {
		chosen.Set("cursor", q.AfterKey)
	}
	got, err := c.page(ctx, q.Connection, q.Stream, chosen, q.Limit)
	if err != nil {
		return page, err
	}
	if err = got.into(&page, q); page.More {
		page.AfterKey = *got.NextCursor
	}
	return page, err
}

// chosenBy is the order of a query, and whether tombstones are in it, as the API
// takes them.
func chosenBy(q store.RecordQuery) url.Values {
	order := string(cmp.Or(q.Order, store.ByVersion))
	if q.Order == store.ByEmitted {
		order = "time"
	}
	if q.Descending {
		order = "-" + order
	}
	out := url.Values{"order": {order}}
	if q.Deleted {
		out.Set("includeDeleted", "true")
	}
	return out
}

func (c recordClient) page(ctx context.Context, id store.ConnectionID, stream store.Stream, q url.Values, limit int) (out recordPage, err error) {
	q.Set("limit", strconv.Itoa(min(limit, 1000)))
	return out, c.get(ctx, at("connections", string(id), "streams", string(stream), "records"), q, &out)
}

// changes is a page of the records that changed behind a version, deletions included, in
// version order. What a point of changes has beside its version is learned from the host
// first.
func (c recordClient) changes(ctx context.Context, id store.ConnectionID, stream store.Stream, after uint64, limit int) (recordPage, error) {
	point := ""
	if after > 0 {
		first, err := c.page(ctx, id, stream, url.Values{"changesSince": {""}}, 1)
		if err != nil {
			return first, err
		}
		point = strconv.FormatUint(after, 10)
		if _, era, ok := strings.Cut(first.NextChangesSince, "-"); ok {
			point += "-" + era
		}
	}
	return c.page(ctx, id, stream, url.Values{"changesSince": {point}}, limit)
}

// maxLine bounds a record of an export.
const maxLine = 64 << 20

// exportEnd begins the last line of an export.
var exportEnd = []byte(`{"end":`)

// ExportLines calls do with the records of a stream that a query chooses, as they stood at
// one version: the lines as they come, each a JSON object and valid until do returns. The
// host writes the export down. Of the query only the order and Deleted count.
func (c recordClient) ExportLines(ctx context.Context, of store.RecordQuery, do func(line []byte) error) error {
	stream, q := of.Stream, chosenBy(of)
	q.Set("format", "ndjson")
	res, err := c.send(ctx, http.MethodGet, at("connections", string(of.Connection), "streams", string(stream), "export"), q, nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errorOf(res)
	}
	r := bufio.NewReaderSize(res.Body, 256<<10)
	for n := 0; ; n++ {
		line, err := readLine(r, maxLine)
		if err != nil {
			return fmt.Errorf("the export of %s broke off: %w", stream, errors.Join(err, io.ErrUnexpectedEOF))
		}
		if !bytes.HasPrefix(line, exportEnd) {
			if err := do(line); err != nil {
				return err
			}
			continue
		}
		var last struct {
			Records int `json:"records"`
		}
		if err := json.Unmarshal(line, &last); err != nil {
			return fmt.Errorf("read the export of %s: %w", stream, err)
		}
		if last.Records != n {
			return fmt.Errorf("the export of %s has %d records of %d", stream, n, last.Records)
		}
		return nil
	}
}

// An Exporter reads streams by their exports: each as it stood at one version, from its
// beginning to its end. One goroutine may use it, and closes it.
type Exporter struct {
	recordClient
	next  func() (store.Record, error, bool)
	ended func()
	of    store.Stream // whose export it is
	read  uint64       // records of it
}

// Exporter makes one.
func (c recordClient) Exporter() *Exporter { return &Exporter{recordClient: c, ended: func() {}} }

// Close ends the export that is being read.
func (x *Exporter) Close() { x.ended() }

// Records goes on with the export of a stream; from the beginning on it is a new
// one. What begins in the middle of a stream has no export, and is listed. A place
// is how many records were read.
func (x *Exporter) Records(ctx context.Context, q store.RecordQuery) (page store.RecordPage, err error) {
	if q.After > 0 && (x.next == nil || x.of != q.Stream) {
		return x.recordClient.Records(ctx, q)
	}
	if q.After == 0 {
		x.ended()
		x.of, x.read = q.Stream, 0
		x.next, x.ended = iter.Pull2(x.records(ctx, q))
	}
	for len(page.Records) < q.Limit {
		r, err, ok := x.next()
		if err != nil || !ok {
			return page, err
		}
		if x.read++; q.Match == nil || q.Match(r) {
			page.Records = append(page.Records, r)
		}
	}
	page.After, page.More = x.read, true
	return page, nil
}

func (x *Exporter) records(ctx context.Context, q store.RecordQuery) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		enough := errors.New("enough")
		err := x.ExportLines(ctx, q, func(line []byte) error {
			var r record
			err := json.Unmarshal(line, &r)
			out := store.Record{}
			if err == nil {
				out, err = r.stored()
			}
			if !yield(out, err) || err != nil {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			yield(store.Record{}, err)
		}
	}
}
