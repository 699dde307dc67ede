package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Stream is what a connection has of a stream.
type Stream struct {
	Stream      store.Stream `json:"stream"`
	Records     uint64       `json:"records"`
	Deleted     uint64       `json:"deleted"`
	LastVersion uint64       `json:"lastVersion"`
}

// Streams lists the streams of a connection, those that hold nothing included.
func (c recordClient) Streams(ctx context.Context, id store.ConnectionID) ([]Stream, error) {
	var out struct {
		Data []Stream `json:"data"`
	}
	err := c.get(ctx, at("connections", string(id), "streams"), nil, &out)
	return out.Data, err
}

// A Record is a record as the API shows it.
type Record struct {
	Stream     store.Stream    `json:"stream"`
	Key        json.RawMessage `json:"key"` // a string, or an array of strings
	Data       json.RawMessage `json:"data"`
	EmittedAt  time.Time       `json:"emittedAt"`
	IngestedAt time.Time       `json:"ingestedAt"`
	Version    uint64          `json:"version"`
	RunID      store.RunID     `json:"runId"`
	Deleted    bool            `json:"deleted"`
}

// A RecordPage is a page of records.
type RecordPage struct {
	Data       []Record `json:"data"`
	NextCursor *string  `json:"nextCursor"`
	// NextChangesSince is where to go on from, for ChangesSince.
	NextChangesSince string `json:"nextChangesSince"`
}

// More reports whether records follow the page.
func (p RecordPage) More() bool { return p.NextCursor != nil && *p.NextCursor != "" }

// ChangesSince is a page of the records of a stream that changed behind a point,
// deletions included, in version order. "" is the beginning; limit is at most
// 1,000.
func (c recordClient) ChangesSince(ctx context.Context, id store.ConnectionID, stream store.Stream, point string, limit int) (out RecordPage, err error) {
	q := url.Values{"changesSince": {point}, "limit": {strconv.Itoa(min(limit, 1000))}}
	return out, c.get(ctx, at("connections", string(id), "streams", string(stream), "records"), q, &out)
}

// Changes is ChangesSince a version. What a point has beside it is learned from
// the host first.
func (c recordClient) Changes(ctx context.Context, id store.ConnectionID, stream store.Stream, after uint64, limit int) (RecordPage, error) {
	if after == 0 {
		return c.ChangesSince(ctx, id, stream, "", limit)
	}
	first, err := c.ChangesSince(ctx, id, stream, "", 1)
	if err != nil {
		return first, err
	}
	point := strconv.FormatUint(after, 10)
	if _, era, ok := strings.Cut(first.NextChangesSince, "-"); ok {
		point += "-" + era
	}
	return c.ChangesSince(ctx, id, stream, point, limit)
}

// maxLine bounds a record of an export.
const maxLine = 64 << 20

// Records is a page of the records of a stream, chosen and ordered by a query.
// cursor is the NextCursor of the page before, "" at the beginning.
func (c recordClient) Records(ctx context.Context, id store.ConnectionID, stream store.Stream, q url.Values, cursor string, limit int) (out RecordPage, err error) {
	q = maps.Clone(q)
	q.Set("limit", strconv.Itoa(min(limit, 1000)))
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return out, c.get(ctx, at("connections", string(id), "streams", string(stream), "records"), q, &out)
}

// Export calls do with the records of a stream that a query chooses, as they stood
// at one version. The host writes the export down.
func (c recordClient) Export(ctx context.Context, id store.ConnectionID, stream store.Stream, q url.Values, do func(Record) error) error {
	return c.ExportLines(ctx, id, stream, q, func(line []byte) error {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read the export of %s: %w", stream, err)
		}
		return do(r)
	})
}

// exportEnd begins the last line of an export.
var exportEnd = []byte(`{"end":`)

// ExportLines is Export for the lines as they come, each a JSON object. A line is valid
// until do returns.
func (c recordClient) ExportLines(ctx context.Context, id store.ConnectionID, stream store.Stream, q url.Values, do func(line []byte) error) error {
	q = maps.Clone(q)
	q.Set("format", "ndjson")
	res, err := c.send(ctx, http.MethodGet, at("connections", string(id), "streams", string(stream), "export"), q, nil, nil)
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
