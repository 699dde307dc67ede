// Package search finds records by the words in their texts. It keeps an index of each connection in an SQLite file
// (FTS5), which it makes for the first search, updates before each search, and makes again if it is missing or damaged.
// The index only has words and keys. What a hit shows is read from the store, which is authoritative.
//
// Search terms are untrusted. Only their letters and digits reach FTS5. Time, memory and the number of hits are
// limited, even for a word that is in every record.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/cache"
	"github.com/sluicehost/sluice/store"
)

// Limits of one search.
const (
	within      = 10 * time.Second // without the time for updating the index
	maxMemory   = 256 << 20        // bytes used by SQLite
	defaultHits = 20
	maxHits     = 100
	// AtOnce is how many searches run concurrently.
	AtOnce  = 4
	maxOpen = 8 // open files
	readers = 4 // concurrent reads of the records that a search shows
	// rare is the maximum number of records with a word for the word to count in ranking. If all words are more
	// frequent, the newest records are the best.
	rare = 4000
)

// Store is the source of the records.
type Store interface {
	store.Records
	Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error)
	Connections(ctx context.Context) ([]store.Connection, error)
}

// Options are the dependencies and settings of Indexes.
type Options struct {
	Store     Store
	Dir       string               // directory of the indexes; "" for a temporary one
	Most      int64                // maximum bytes of all indexes; 0 for no limit
	Setting   string               // name of the setting for Most
	Room      func() error         // returns an error while the disk is nearly full; may be nil
	Semaphore *cache.FairSemaphore // shared with other Indexes; nil allows AtOnce for these
}

// Indexes implements host.Searcher with the indexes of all connections. It is safe for concurrent use.
type Indexes struct {
	store Store
	files *cache.Dir[place]
	turns *cache.FairSemaphore
}

// A place holds the index of a connection while it is open.
type place struct{ index *index } // nil unless open

var _ host.Searcher = (*Indexes)(nil)

// New returns Indexes. It makes each index when it is first needed.
func New(o Options) *Indexes {
	return &Indexes{store: o.Store, turns: cmp.Or(o.Semaphore, cache.NewFairSemaphore(AtOnce)),
		files: cache.New(cache.Options{Dir: o.Dir, Most: o.Most, Setting: o.Setting, Code: "search_limit", Room: o.Room},
			(*place).close)}
}

// Close closes all files and removes temporary ones. No search may be running.
func (xs *Indexes) Close() error { return xs.files.Close() }

// Forget removes the index of a connection.
func (xs *Indexes) Forget(id store.ConnectionID) error { return xs.files.Forget(id) }

func (p *place) close() (err error) {
	if p.index != nil {
		err = p.index.close()
		p.index = nil
	}
	return err
}

// Search implements host.Searcher.
func (xs *Indexes) Search(ctx context.Context, q host.SearchQuery) (host.SearchResult, error) {
	none := host.SearchResult{}
	t, err := parse(q.Words)
	switch {
	case err != nil:
		return none, err
	case q.Limit < 0 || q.Limit > maxHits:
		return none, host.Invalid("limit", "range", "want 1 to %d", maxHits)
	case q.Limit == 0:
		q.Limit = defaultHits
	}
	leave, err := xs.turns.Take(ctx, host.Who(ctx).ID)
	if err != nil {
		return none, err
	}
	defer leave()
	connections, err := xs.seen(ctx, q)
	if err != nil {
		return none, err
	}
	var all []finding
	for _, c := range connections {
		found, err := xs.searchConnection(ctx, c, q, t)
		if err != nil {
			return none, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.at, a.at), cmp.Compare(b.row, a.row))
	})
	return xs.hits(ctx, t, all, q.Limit)
}

// hits reads the best records, several at a time because each takes the store a segment. It skips records that were
// deleted meanwhile.
func (xs *Indexes) hits(ctx context.Context, t terms, all []finding, most int) (host.SearchResult, error) {
	out := host.SearchResult{Hits: []host.Hit{}}
	for some := range slices.Chunk(all, readers) {
		hits, errs := make([]*host.Hit, len(some)), make([]error, len(some))
		var reading sync.WaitGroup
		for i, f := range some {
			reading.Go(func() { hits[i], errs[i] = xs.hit(ctx, f, t) })
		}
		reading.Wait()
		if err := errors.Join(errs...); err != nil {
			return out, err
		}
		for _, h := range hits {
			if h == nil {
				continue
			}
			if out.More = len(out.Hits) == most; out.More {
				return out, nil
			}
			out.Hits = append(out.Hits, *h)
		}
	}
	return out, nil
}

// hit reads a record. It returns nil if the record is gone.
func (xs *Indexes) hit(ctx context.Context, f finding, t terms) (*host.Hit, error) {
	r, err := xs.read(ctx, f)
	if errors.Is(err, store.ErrNotFound) || err == nil && r.Deleted {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a record of %s: %w", f.connection, err)
	}
	connection, stream := string(f.connection), string(f.stream)
	return &host.Hit{ConnectionID: connection, Stream: stream, Key: r.Key, IngestedAt: r.IngestedAt,
		Snippets: t.snippets(r.Data), Links: host.HitLinks{
			Record: "/v1/connections/" + url.PathEscape(connection) + "/streams/" + url.PathEscape(stream) + "/records/" +
				url.PathEscape(r.Key),
			Page: "/ui/record?" + url.Values{"connection": {connection}, "stream": {stream}, "key": {r.Key}}.Encode(),
		}}, nil
}

// read reads a record by its version, or by its key if it has changed meanwhile or its version is unknown. To find a
// key the embedded store may have to read all records that it has not indexed.
func (xs *Indexes) read(ctx context.Context, f finding) (store.Record, error) {
	if f.version > 0 {
		page, err := xs.store.Records(ctx,
			store.RecordQuery{Connection: f.connection, Stream: f.stream, After: f.version - 1, Deleted: true, Limit: 1})
		switch {
		case errors.Is(err, store.ErrCursorExpired): // the stream was made anew
		case err != nil:
			return store.Record{}, err
		case len(page.Records) == 1 && page.Records[0].Version == f.version && page.Records[0].Key == f.key:
			return page.Records[0], nil
		}
	}
	return xs.store.Record(ctx, f.connection, f.stream, f.key)
}

// seen returns the connections to search.
func (xs *Indexes) seen(ctx context.Context, q host.SearchQuery) (out []store.Connection, err error) {
	all, err := xs.store.Connections(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	for _, c := range all {
		if !c.Temporary && (q.ConnectionID == "" || q.ConnectionID == string(c.ID)) &&
			(q.Only == nil || slices.Contains(q.Only, c.ID)) {
			out = append(out, c)
		}
	}
	return out, nil
}

// searchConnection searches one connection. A damaged index is made again, once.
func (xs *Indexes) searchConnection(ctx context.Context, c store.Connection, q host.SearchQuery,
	t terms) (out []finding, err error) {
	if err := xs.files.Idle(maxOpen - 1); err != nil {
		return nil, fmt.Errorf("close an index: %w", err)
	}
	f, err := xs.files.Use(c.ID)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	f.Lock()
	defer f.Unlock()
	out, err = xs.tryConnection(ctx, f, c, q, t)
	if damaged(err) {
		if err = f.Remove(); err == nil {
			out, err = xs.tryConnection(ctx, f, c, q, t)
		}
	}
	var r *host.Refusal
	switch {
	case errors.As(err, &r):
		return nil, r
	case err == nil, ctx.Err() != nil:
		return out, err
	case full(err):
		return nil, host.Refuse("store_no_space",
			"the disk is full, so connection %s cannot be indexed for search; free some space and search again", c.ID)
	}
	return nil, fmt.Errorf("search connection %s: %w", c.ID, err)
}

// damaged reports whether an error says that an index is not as it was written, so that another one has to be made.
// There may be a directory or the like in its place.
func damaged(err error) bool {
	for _, of := range []error{sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.CANTOPEN, sqlite3.IOERR, sqlite3.ERROR, errLayout, syscall.EISDIR} {
		if errors.Is(err, of) {
			return !full(err)
		}
	}
	return false
}

// full reports whether an error says that the disk is full.
func full(err error) bool {
	return errors.Is(err, sqlite3.FULL) || errors.Is(err, sqlite3.IOERR_WRITE) || errors.Is(err, sqlite3.IOERR_SHMSIZE) ||
		errors.Is(err, syscall.ENOSPC)
}

func (xs *Indexes) tryConnection(ctx context.Context, f *cache.File[place], c store.Connection, q host.SearchQuery,
	t terms) (out []finding, err error) {
	p := &f.Value
	defer func() { // when SQLite runs out of memory the library panics and the connection is lost
		if r := recover(); r != nil {
			if e, ok := r.(error); !ok || e.Error() != "sqlite3: out of memory" {
				panic(r)
			}
			p.index, out, err = nil, nil,
				host.Refuse("search_limit", "the search needs more than %d MiB of memory; look for less at once", maxMemory>>20)
		}
	}()
	if p.index != nil && !p.index.same() {
		_ = p.close() // the file is gone
	}
	if p.index == nil {
		if p.index, err = open(f.Path); err != nil {
			p.index = nil
			return nil, err
		}
	}
	if err := p.index.refresh(ctx, xs.store, c, f.Grow); err != nil {
		return nil, err
	}
	if err := f.Fit(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	old := p.index.db.SetInterrupt(ctx)
	defer p.index.db.SetInterrupt(old)
	for stream := range p.index.parts {
		if q.Stream != "" && q.Stream != string(stream) {
			continue
		}
		found, err := p.index.find(stream, t, q.Limit+1)
		if errors.Is(err, sqlite3.INTERRUPT) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, host.Refuse("search_limit", "the search took longer than %s; look in one connection or for rarer words",
				within)
		}
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			f.connection, f.stream = c.ID, stream
			out = append(out, f)
		}
	}
	return out, nil
}
