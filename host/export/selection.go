package export

import (
	"cmp"
	"context"
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A Source is where records are read from: a store, or a view of one commit.
type Source interface {
	Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error)
}

// A Selection says which records of a connection to export, and which parts of them.
type Selection struct {
	Connection store.ConnectionID
	Streams    []From
	Deleted    bool // tombstones too
	// Match, Order and Descending are those of store.RecordQuery.
	Match      func(store.Record) bool
	Order      store.Order
	Descending bool
	Keep       map[string]bool // members of the data to export; nil for all
	Page       int             // records to read at once, at most pageRecords; 0 for that many
	Manifest   *abi.Manifest   // for the order of columns; may be nil
}

// From is one stream's records with a version above After.
type From struct {
	Stream store.Stream
	After  uint64
}

// pageRecords is how many records are read at once. If a page ends within a segment of the store, the next one reads
// the whole segment again.
const pageRecords = 5000

// Query returns the query for the first page of a stream.
func (s Selection) Query(from From) store.RecordQuery {
	return store.RecordQuery{Connection: s.Connection, Stream: from.Stream, After: from.After, Deleted: s.Deleted,
		Match: s.Match, Order: s.Order, Descending: s.Descending, Limit: cmp.Or(min(s.Page, pageRecords), pageRecords)}
}

// Each calls do for every selected record, stream by stream, in the requested order. The next page is read meanwhile.
// It returns do's error, or that of reading.
func (s Selection) Each(ctx context.Context, src Source, do func(store.Record) error) error {
	for _, from := range s.Streams {
		if err := s.each(ctx, src, from, do); err != nil {
			return err
		}
	}
	return nil
}

func (s Selection) each(ctx context.Context, src Source, from From, do func(store.Record) error) error {
	ctx, cancel := context.WithCancel(ctx)
	next := readPages(ctx, src, s.Query(from))
	defer func() {
		cancel()
		for range next { // until the reader is gone
		}
	}()
	for read := range next {
		if read.err != nil {
			return fmt.Errorf("read records of %s: %w", from.Stream, read.err)
		}
		for _, r := range read.Records {
			r, err := Only(r, s.Keep)
			if err != nil {
				return err
			}
			if err := do(r); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

type readPage struct {
	store.RecordPage
	err error
}

// readPages reads pages until the last one, an error or the end of ctx, and then closes the channel.
func readPages(ctx context.Context, src Source, q store.RecordQuery) <-chan readPage {
	pages := make(chan readPage)
	go func() {
		defer close(pages)
		for more := true; more; {
			page, err := src.Records(ctx, q)
			select {
			case pages <- readPage{page, err}:
			case <-ctx.Done():
				return
			}
			q.After, q.AfterKey, more = page.After, page.AfterKey, err == nil && page.More
		}
	}()
	return pages
}
