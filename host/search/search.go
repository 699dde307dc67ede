// Package search finds records by the words in their texts. Of each connection it keeps an
// index in a file of SQLite (FTS5), which is made when somebody searches first, brought up to
// date before each search, and made anew when it is missing or damaged. It holds words and
// keys: what a hit shows is read from the store, which stays the truth.
//
// What is looked for is hostile. Only letters and digits of it reach FTS5. Time, memory and
// the number of hits are bounded, also where a word is in every record.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// The bounds of one search.
const (
	within      = 10 * time.Second // and however long the index takes
	maxMemory   = 256 << 20        // bytes, of SQLite
	defaultHits = 20
	maxHits     = 100
	atOnce      = 4
	maxOpen     = 8 // files
	// rare is how many records have a word at most that says how well a record fits. Where
	// all words are in more, the newest records are the best.
	rare = 10_000
)

// Store is what is searched.
type Store interface {
	store.Records
	Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error)
	Connections(ctx context.Context) ([]store.Connection, error)
}

// Options are what the wiring gives.
type Options struct {
	Store Store
	Dir   string // where the indexes are; "" makes a temporary one
	Room  func() error
}

// An Indexes is the indexes of all connections. Its methods may be called concurrently. It
// implements host.Searcher.
type Indexes struct {
	o    Options
	temp bool
	busy chan struct{}

	mu   sync.Mutex // guards what follows, and o.Dir
	open map[store.ConnectionID]*place
}

// A place is where the index of a connection is.
type place struct {
	mu    sync.Mutex // held while the index is used
	index *index     // nil while it is not open
	used  time.Time  // guarded by Indexes.mu
}

var _ host.Searcher = (*Indexes)(nil)

// New makes the indexes. None is made before it is asked for.
func New(o Options) *Indexes {
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	return &Indexes{o: o, busy: make(chan struct{}, atOnce), open: map[store.ConnectionID]*place{}}
}

// Close lets go of all files, and removes what is temporary. Nobody searches any more.
func (xs *Indexes) Close() (err error) {
	for _, p := range xs.open {
		err = errors.Join(err, p.close())
	}
	if xs.temp {
		err = errors.Join(err, os.RemoveAll(xs.o.Dir))
	}
	return err
}

func (p *place) close() (err error) {
	if p.index != nil {
		err = p.index.close()
		p.index = nil
	}
	return err
}

// Forget removes the index of a connection.
func (xs *Indexes) Forget(id store.ConnectionID) error {
	xs.mu.Lock()
	dir := xs.o.Dir
	xs.mu.Unlock()
	if dir == "" {
		return nil
	}
	p := xs.place(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.close(), remove(filepath.Join(dir, string(id)+".db")))
}

func remove(path string) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(path + suffix); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// place is that of a connection. Of those that nobody used for longest the file is closed.
func (xs *Indexes) place(id store.ConnectionID) *place {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	p := xs.open[id]
	if p == nil {
		p = &place{}
		xs.open[id] = p
	}
	p.used = time.Now()
	var idle []*place
	for _, other := range xs.open {
		if other != p && other.mu.TryLock() {
			if other.index != nil {
				idle = append(idle, other)
			} else {
				other.mu.Unlock()
			}
		}
	}
	slices.SortFunc(idle, func(a, b *place) int { return b.used.Compare(a.used) })
	for i, other := range idle {
		if i >= maxOpen-1 {
			_ = other.close() // all that it held is written
		}
		other.mu.Unlock()
	}
	return p
}

func (xs *Indexes) dir() (string, error) {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	if xs.o.Dir == "" {
		dir, err := os.MkdirTemp("", "sluice-search-")
		if err != nil {
			return "", err
		}
		xs.o.Dir, xs.temp = dir, true
	}
	return xs.o.Dir, nil
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
	select {
	case xs.busy <- struct{}{}:
		defer func() { <-xs.busy }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
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

// hits reads the best records. One that was deleted meanwhile is none.
func (xs *Indexes) hits(ctx context.Context, t terms, all []finding, most int) (host.SearchResult, error) {
	out := host.SearchResult{Hits: []host.Hit{}}
	for _, f := range all {
		if out.More = len(out.Hits) == most; out.More {
			break
		}
		r, err := xs.o.Store.Record(ctx, f.connection, f.stream, f.key)
		if errors.Is(err, store.ErrNotFound) || err == nil && r.Deleted {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("read a record of %s: %w", f.connection, err)
		}
		out.Hits = append(out.Hits, hit(f.connection, r, t))
	}
	return out, nil
}

// seen are the connections to search.
func (xs *Indexes) seen(ctx context.Context, q host.SearchQuery) (out []store.Connection, err error) {
	all, err := xs.o.Store.Connections(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	for _, c := range all {
		if !c.Temporary && (q.ConnectionID == "" || q.ConnectionID == string(c.ID)) && (q.Only == nil || slices.Contains(q.Only, c.ID)) {
			out = append(out, c)
		}
	}
	return out, nil
}

func hit(c store.ConnectionID, r store.Record, t terms) host.Hit {
	connection, stream, key := string(c), string(r.Stream), r.Key
	return host.Hit{ConnectionID: connection, Stream: stream, Key: key, IngestedAt: r.IngestedAt, Snippets: t.snippets(r.Data), Links: host.HitLinks{
		Record: "/v1/connections/" + url.PathEscape(connection) + "/streams/" + url.PathEscape(stream) + "/records/" + url.PathEscape(key),
		Page:   "/ui/record?" + url.Values{"connection": {connection}, "stream": {stream}, "key": {key}}.Encode(),
	}}
}

// searchConnection searches one connection. An index that is damaged is made anew, once.
func (xs *Indexes) searchConnection(ctx context.Context, c store.Connection, q host.SearchQuery, t terms) (out []finding, err error) {
	dir, err := xs.dir()
	if err != nil {
		return nil, fmt.Errorf("make a directory for search: %w", err)
	}
	p, path := xs.place(c.ID), filepath.Join(dir, string(c.ID)+".db")
	p.mu.Lock()
	defer p.mu.Unlock()
	out, err = xs.tryConnection(ctx, p, path, c, q, t)
	if damaged(err) {
		if err = errors.Join(p.close(), remove(path)); err == nil {
			out, err = xs.tryConnection(ctx, p, path, c, q, t)
		}
	}
	var r *host.Refusal
	if err != nil && ctx.Err() == nil && !errors.As(err, &r) {
		err = fmt.Errorf("search connection %s: %w", c.ID, err)
	}
	return out, err
}

func damaged(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, errLayout) || errors.Is(err, sqlite3.ERROR)
}

func (xs *Indexes) tryConnection(ctx context.Context, p *place, path string, c store.Connection, q host.SearchQuery, t terms) (out []finding, err error) {
	defer func() { // the library panics where SQLite has no more memory, and its connection is lost
		if r := recover(); r != nil {
			if e, ok := r.(error); !ok || e.Error() != "sqlite3: out of memory" {
				panic(r)
			}
			p.index, out, err = nil, nil, host.Refuse("search_limit", "the search needs more than %d MiB of memory; look for less at once", maxMemory>>20)
		}
	}()
	if p.index != nil && !p.index.same() {
		_ = p.close() // the file is gone
	}
	if p.index == nil {
		if p.index, err = open(path); err != nil {
			p.index = nil
			return nil, err
		}
	}
	if err := p.index.refresh(ctx, xs.o.Store, c, xs.o.Room); err != nil {
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
			return nil, host.Refuse("search_limit", "the search took longer than %s; look in one connection or for rarer words", within)
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
