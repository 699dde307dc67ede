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

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// Streams returns the counters of the streams of a connection that ever held a record, by
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
			out = append(out, store.StreamStats{Stream: s.Stream, Live: s.Records, Tombstones: s.Deleted,
				LastVersion: s.LastVersion})
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

// stored returns the record as the store has it.
func (r record) stored() (store.Record, error) {
	out := store.Record{
		Stream: r.Stream, Data: r.Data, EmittedAt: r.EmittedAt, IngestedAt: r.IngestedAt, Version: r.Version,
		RunID: r.RunID, Deleted: r.Deleted, Key: string(r.Key), Compound: len(r.Key) > 0 && r.Key[0] == '[',
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
	// NextChangesSince is the changesSince of the next request.
	NextChangesSince string `json:"nextChangesSince"`
}

func (p recordPage) more() bool { return p.NextCursor != nil && *p.NextCursor != "" }

// into appends the records that q selects to page.
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

// Records returns a page of the records of a stream, as a store reads one; at most 1,000.
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

// ordered returns a page in any order, whose AfterKey is the host's cursor.
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

// chosenBy returns the parameters of the API for a query's order and tombstones.
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

func (c recordClient) page(ctx context.Context, id store.ConnectionID, stream store.Stream, q url.Values,
	limit int) (out recordPage, err error) {
	q.Set("limit", strconv.Itoa(min(limit, 1000)))
	return out, c.get(ctx, at("connections", string(id), "streams", string(stream), "records"), q, &out)
}

// changes returns a page of the records that changed after a version, deletions included, in
// version order.
func (c recordClient) changes(ctx context.Context, id store.ConnectionID, stream store.Stream, after uint64,
	limit int) (recordPage, error) {
	point, err := c.point(ctx, id, stream, after)
	if err != nil {
		return recordPage{}, err
	}
	return c.page(ctx, id, stream, url.Values{"changesSince": {point}}, limit)
}

// point returns a version as changesSince takes it. It first asks the
// host for the part after the version.
func (c recordClient) point(ctx context.Context, id store.ConnectionID, stream store.Stream,
	after uint64) (string, error) {
	if after == 0 {
		return "", nil
	}
	first, err := c.page(ctx, id, stream, url.Values{"changesSince": {""}}, 1)
	point := strconv.FormatUint(after, 10)
	if _, era, ok := strings.Cut(first.NextChangesSince, "-"); ok {
		point += "-" + era
	}
	return point, err
}

// maxLine bounds a record of an export.
const maxLine = 64 << 20

// exportEnd is the beginning of the last line of an export.
var exportEnd = []byte(`{"end":`)

// export begins an export of the records of a stream that a query chooses, as of
// one version. The caller closes the body. It ignores the query's Match and Limit.
func (x *Exporter) export(ctx context.Context, of store.RecordQuery, format string) (*http.Response, error) {
	q := chosenBy(of)
	q.Set("format", format)
	if x.find != "" {
		q.Set("find", x.find)
	}
	if of.After > 0 {
		point, err := x.point(ctx, of.Connection, of.Stream, of.After)
		if err != nil {
			return nil, err
		}
		q.Set("changesSince", point)
	}
	res, err := x.send(ctx, http.MethodGet,
		at("connections", string(of.Connection), "streams", string(of.Stream), "export"), q, nil, nil)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		err = errorOf(res)
	} else if x.newest != nil {
		x.newest[of.Stream], err = strconv.ParseUint(res.Header.Get("Sluice-Export-Version"), 10, 64)
	}
	if err != nil {
		res.Body.Close()
		return nil, err
	}
	return res, nil
}

// Lines calls do with the records of a stream that a query chooses, as of one version.
// Each line is a JSON object with its newline and valid until do returns. The host records
// the export in its audit log. It ignores the query's Match.
func (x *Exporter) Lines(ctx context.Context, of store.RecordQuery, do func(line []byte) error) error {
	res, err := x.export(ctx, of, "ndjson")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	r := bufio.NewReaderSize(res.Body, 256<<10)
	for n := int64(0); ; n++ {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = longLine(r, line)
		}
		if err != nil {
			return fmt.Errorf("the export of %s broke off: %w", of.Stream, errors.Join(err, io.ErrUnexpectedEOF))
		}
		if !bytes.HasPrefix(line, exportEnd) {
			if err := do(line); err != nil {
				return err
			}
			continue
		}
		var last struct {
			Records int64 `json:"records"`
		}
		if err := json.Unmarshal(line, &last); err != nil {
			return fmt.Errorf("read the export of %s: %w", of.Stream, err)
		}
		if last.Records != n {
			return fmt.Errorf("the export of %s has %d records of %d", of.Stream, n, last.Records)
		}
		return nil
	}
}

// longLine reads the rest of a line that is longer than the buffer.
func longLine(r *bufio.Reader, begun []byte) ([]byte, error) {
	line := bytes.Clone(begun)
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errFrame
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// CSV writes the records of a stream that a query chooses as CSV, as of one version, and
// returns their number. The host makes the rows. It ignores the query's Match.
func (x *Exporter) CSV(ctx context.Context, of store.RecordQuery, w io.Writer) (int64, error) {
	res, err := x.export(ctx, of, "csv")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	n, err := strconv.ParseInt(res.Header.Get("Sluice-Export-Records"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the export of %s does not say how many records it has: %w", of.Stream, err)
	}
	if _, err := io.CopyBuffer(onlyWriter{w}, res.Body, make([]byte, 256<<10)); err != nil {
		return 0, fmt.Errorf("the export of %s broke off: %w", of.Stream, err)
	}
	return n, nil
}

// onlyWriter hides the ReadFrom of w from io.Copy, which would read smaller pieces.
type onlyWriter struct{ io.Writer }

// An Exporter reads streams through exports, each as of one version. It is for one
// goroutine, which closes it.
type Exporter struct {
	recordClient
	find   string
	newest map[store.Stream]uint64
	next   func() (store.Record, error, bool)
	ended  func()
	of     store.Stream // the one being exported
	at     uint64       // version of the last record, or its position in another order
}

// Exporter returns an Exporter of the records whose key or data contains find, for which the
// host searches. Unless nil, newest receives the version of each exported stream.
func (c recordClient) Exporter(find string, newest map[store.Stream]uint64) *Exporter {
	return &Exporter{recordClient: c, find: find, newest: newest, ended: func() {}}
}

// Close ends the export that is being read.
func (x *Exporter) Close() { x.ended() }

// Records continues the export of a stream if q starts where the last page ended, and
// begins a new export otherwise.
func (x *Exporter) Records(ctx context.Context, q store.RecordQuery) (page store.RecordPage, err error) {
	byVersion := cmp.Or(q.Order, store.ByVersion) == store.ByVersion && !q.Descending
	if x.next == nil || q.After == 0 || q.After != x.at || q.Stream != x.of {
		x.ended()
		x.of, x.at = q.Stream, q.After
		x.next, x.ended = iter.Pull2(x.records(ctx, q))
	}
	page.Records = make([]store.Record, 0, q.Limit)
	for len(page.Records) < q.Limit {
		r, err, ok := x.next()
		if err != nil || !ok {
			x.next = nil
			return page, err
		}
		if x.at++; byVersion {
			x.at = r.Version
		}
		if (q.Deleted || !r.Deleted) && (q.Match == nil || q.Match(r)) {
			page.Records = append(page.Records, r)
		}
	}
	page.After, page.More = x.at, true
	return page, nil
}

func (x *Exporter) records(ctx context.Context, q store.RecordQuery) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		enough := errors.New("enough")
		err := x.Lines(ctx, q, func(line []byte) error {
			r, err := recordOf(bytes.Clone(line))
			if err != nil {
				err = fmt.Errorf("read the export of %s: %w", q.Stream, err)
			}
			if !yield(r, err) || err != nil {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			yield(store.Record{}, err)
		}
	}
}

// recordOf parses a line of an export. The record shares the memory of line.
func recordOf(line []byte) (r store.Record, err error) {
	line = bytes.TrimSpace(line)
	v := strictjson.ValueOf(line)
	if !v.Is(strictjson.KindObject) || len(v.Raw) != len(line) {
		return r, errors.New("a line is no record")
	}
	for name, m := range v.RawMembers() {
		text, _ := strictjson.Plain(m.Raw)
		switch string(name) {
		case `"stream"`:
			r.Stream = store.Stream(strictjson.String(m.Raw))
		case `"key"`:
			if r.Compound = m.Is(strictjson.KindArray); r.Compound {
				r.Key = string(m.Raw)
			} else {
				r.Key = strictjson.String(m.Raw)
			}
		case `"data"`:
			r.Data = m.Raw
		case `"emittedAt"`:
			err = r.EmittedAt.UnmarshalText(text)
		case `"ingestedAt"`:
			err = r.IngestedAt.UnmarshalText(text)
		case `"version"`:
			r.Version, err = strconv.ParseUint(string(m.Raw), 10, 64)
		case `"runId"`:
			r.RunID = store.RunID(strictjson.String(m.Raw))
		case `"deleted"`:
			r.Deleted, _ = m.Bool()
		}
		if err != nil {
			return r, err
		}
	}
	if r.Version == 0 {
		return r, errors.New("a line is no record")
	}
	return r, nil
}
