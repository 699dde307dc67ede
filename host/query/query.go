// Package query answers SQL queries about collected data. It keeps a copy of each connection in an SQLite file, which
// it updates before each query, and makes again if it is missing or damaged: the store is authoritative.
//
// Statements are untrusted. SQLite itself decides what they may do: its authorizer is asked about every table, column
// and function before a statement runs. The files are opened read-only, and only those of visible connections. Time,
// memory and the size of the answer are limited.
package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/cache"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/sqlite"
	"github.com/sluicehost/sluice/store"
)

// Limits of one query.
const (
	within      = 30 * time.Second
	maxMemory   = 256 << 20 // bytes used by SQLite
	maxScratch  = 1 << 30   // bytes on disk for sorting
	maxSQL      = 100_000   // bytes
	defaultRows = 1000
	maxRows     = 100_000
	maxAnswer   = 32 << 20 // bytes
	maxCells    = 2_000_000
	maxJoined   = 10 // connections in one statement
	// AtOnce is how many queries run concurrently.
	AtOnce = 4
)

// Store is the source of the data.
type Store interface {
	store.Records
	Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error)
	Connections(ctx context.Context) ([]store.Connection, error)
}

// Options are the dependencies and settings of a Mirror.
type Options struct {
	Store     Store
	Dir       string               // directory of the copies; "" for a temporary one
	Most      int64                // maximum bytes of all copies; 0 for no limit
	Setting   string               // name of the setting for Most
	Room      func() error         // returns an error while the disk is nearly full; may be nil
	Semaphore *cache.FairSemaphore // shared with other mirrors; nil allows AtOnce for this one
	Lister    string               // what lists the tables, in errors; "" for sluice tables
}

// A Mirror implements host.Queries on copies of all connections. It is safe for concurrent use.
type Mirror struct {
	store  Store
	copies *cache.Dir[struct{}]
	turns  *cache.FairSemaphore

	lister  string
	within  time.Duration // for one query
	scratch int64         // bytes of one query's scratch files

	mu      sync.Mutex // guards copying
	copying map[store.ConnectionID]*host.Copying
}

// A duplicate is the copy of one connection.
type duplicate = cache.File[struct{}]

var _ host.Queries = (*Mirror)(nil)

// New returns a mirror. It copies connections when they are first queried.
func New(o Options) *Mirror {
	return &Mirror{store: o.Store, turns: cmp.Or(o.Semaphore, cache.NewFairSemaphore(AtOnce)),
		lister: cmp.Or(o.Lister, "sluice tables"), within: within, scratch: maxScratch,
		copying: map[store.ConnectionID]*host.Copying{},
		copies: cache.New[struct{}](cache.Options{Dir: o.Dir, Most: o.Most, Setting: o.Setting, Code: "query_limit",
			Room: o.Room}, nil)}
}

// Close removes temporary files. No query may be running.
func (m *Mirror) Close() error { return m.copies.Close() }

// Forget removes the copy of a connection.
func (m *Mirror) Forget(id store.ConnectionID) error { return m.copies.Forget(id) }

// Tables implements host.Queries.
func (m *Mirror) Tables(ctx context.Context, only []store.ConnectionID) ([]host.Table, error) {
	connections, err := m.store.Connections(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	out := []host.Table{}
	for _, c := range connections {
		if c.Temporary || only != nil && !slices.Contains(only, c.ID) {
			continue
		}
		streams, err := m.store.Streams(ctx, c.ID)
		if err != nil {
			return nil, fmt.Errorf("list streams of %s: %w", c.ID, err)
		}
		tables, err := m.tables(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			t := host.Table{Name: word(string(c.ID)) + "." + word(string(s.Stream)), ConnectionID: string(c.ID),
				Stream: string(s.Stream), Columns: []host.QueryColumn{},
				Records: s.Live, Bytes: s.Bytes, UpdatedAt: s.UpdatedAt}
			if h, ok := tables[destination.StreamID{Connection: c.ID, Stream: s.Stream}]; ok {
				t.Name = word(schemaOf(c.ID)) + "." + word(h.Table)
				for _, col := range h.Shape.Columns {
					t.Columns = append(t.Columns, host.QueryColumn{Name: col.Name, Type: string(col.Type)})
				}
			}
			out = append(out, t)
		}
	}
	return out, nil
}

var plain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
})

// word returns a name as it is written in a statement.
func word(name string) string {
	if plain().MatchString(name) && !keyword[strings.ToUpper(name)] {
		return name
	}
	return sqlite3.QuoteIdentifier(name)
}

// keyword has those reserved words of SQLite that are plausible names of streams.
var keyword = map[string]bool{"ALL": true, "AND": true, "AS": true, "BETWEEN": true, "CASE": true, "CHECK": true,
	"COLLATE": true, "COMMIT": true, "CREATE": true,
	"DEFAULT": true, "DELETE": true, "DISTINCT": true, "DROP": true, "ELSE": true, "EXISTS": true, "FROM": true,
	"GROUP": true, "HAVING": true, "IN": true, "INDEX": true, "INSERT": true, "INTO": true, "IS": true, "JOIN": true,
	"LIMIT": true, "NOT": true, "NULL": true, "ON": true, "OR": true, "ORDER": true, "PRIMARY": true, "REFERENCES": true,
	"SELECT": true, "SET": true, "TABLE": true, "THEN": true, "TO": true, "TRANSACTION": true, "UNION": true,
	"UNIQUE": true, "UPDATE": true, "USING": true, "VALUES": true, "WHEN": true, "WHERE": true, "MAIN": true, "TEMP": true}

// schemaOf returns the name under which a connection's copy is attached: its id, unless SQLite has a schema of that
// name. No id begins with an underscore.
func schemaOf(id store.ConnectionID) string {
	if id == "main" || id == "temp" {
		return "_" + string(id)
	}
	return string(id)
}

// tables returns a connection's tables.
func (m *Mirror) tables(ctx context.Context, c store.Connection) (map[destination.StreamID]destination.Holding, error) {
	f, err := m.refresh(ctx, c)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	db, err := sqlite.Read(f.Path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.Holdings(ctx)
}

// refresh brings the copy of a connection up to date, and replaces it if it is damaged. The caller must release it.
func (m *Mirror) refresh(ctx context.Context, c store.Connection) (_ *duplicate, err error) {
	f, err := m.copies.Use(c.ID)
	if err != nil {
		return nil, err
	}
	f.Lock()
	defer f.Unlock()
	err = m.copy(ctx, f, c)
	if damaged(err) {
		if err = f.Remove(); err == nil {
			err = m.copy(ctx, f, c)
		}
	}
	if err == nil {
		return f, nil
	}
	f.Release()
	var r *host.Refusal
	switch {
	case errors.As(err, &r):
		return nil, r
	case ctx.Err() != nil:
		return nil, err
	case sqlite.IsFull(err):
		return nil, host.Refuse("store_no_space",
			"the disk is full, so connection %s cannot be copied for queries; free some space and ask again", c.ID)
	}
	return nil, fmt.Errorf("copy connection %s for queries: %w", c.ID, err)
}

// damaged reports whether an error says that a copy is not as it was written, so that another one has to be made. There
// may be a directory or the like in its place.
func damaged(err error) bool {
	for _, of := range []error{sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.CANTOPEN, sqlite3.IOERR, destination.ErrForeign,
		syscall.EISDIR} {
		if errors.Is(err, of) {
			return !sqlite.IsFull(err)
		}
	}
	return errors.As(err, new(destination.Blocked))
}

func (m *Mirror) copy(ctx context.Context, f *duplicate, c store.Connection) (err error) {
	streams, err := m.store.Streams(ctx, c.ID)
	if err != nil {
		return err
	}
	sink, err := sqlite.Open(ctx, f.Path, destination.Owner{Host: "mirror", Destination: "mirror"}, sqlite.Options{
		Table: func(id destination.StreamID) string { return string(id.Stream) }, Volatile: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	have, err := sink.Holdings(ctx)
	if err != nil {
		return err
	}
	manifest, err := abi.ReadManifest(c.Manifest)
	if err != nil {
		manifest = &abi.Manifest{}
	}
	progress := m.begin(c.ID, streams, have)
	defer m.end(c.ID)
	for _, s := range streams {
		id := destination.StreamID{Connection: c.ID, Stream: s.Stream}
		var holding *destination.Holding
		if h, ok := have[id]; ok {
			holding = &h
			delete(have, id)
			if h.Mark == s.LastVersion && h.Since.Equal(c.CreatedAt) {
				continue
			}
		}
		w := destination.Wanted{StreamID: id, Since: c.CreatedAt, Spec: manifest.Stream(string(s.Stream)),
			Mode: destination.Current, Last: s.LastVersion}
		if err := destination.Bring(ctx, m.store, fitting{sink, f}, w, holding, progress); err != nil {
			return err
		}
	}
	for id := range have { // the stream was erased
		if err := sink.Clear(ctx, id); err != nil {
			return err
		}
	}
	return f.Fit()
}

// begin records that a connection is being copied, until end. The returned function must be called with the number of
// rows that were copied.
func (m *Mirror) begin(id store.ConnectionID, streams []store.StreamStats,
	have map[destination.StreamID]destination.Holding) func(rows int) {
	p := &host.Copying{ConnectionID: string(id)}
	for _, s := range streams {
		if h, ok := have[destination.StreamID{Connection: id, Stream: s.Stream}]; ok && h.Mark <= s.LastVersion {
			p.Total += s.LastVersion - h.Mark
		} else {
			p.Total += s.Live
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.Total > 0 {
		m.copying[id] = p
	}
	return func(rows int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		p.Done = min(p.Done+uint64(rows), p.Total) // #nosec G115 -- a number of rows
	}
}

func (m *Mirror) end(id store.ConnectionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.copying, id)
}

// Copying implements host.Queries.
func (m *Mirror) Copying(_ context.Context, only []store.ConnectionID) ([]host.Copying, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []host.Copying{}
	for id, p := range m.copying {
		if only == nil || slices.Contains(only, id) {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b host.Copying) int { return strings.Compare(a.ConnectionID, b.ConnectionID) })
	return out, nil
}

// A fitting is a sink that makes room for each batch.
type fitting struct {
	*sqlite.Sink
	file *duplicate
}

// Apply implements destination.Sink.
func (s fitting) Apply(ctx context.Context, b *destination.Batch) error {
	if err := s.file.Grow(); err != nil {
		return err
	}
	return s.Sink.Apply(ctx, b)
}

// Query implements host.Queries.
func (m *Mirror) Query(ctx context.Context, q host.Query) (found host.QueryResult, err error) {
	var none host.QueryResult
	switch {
	case strings.TrimSpace(q.SQL) == "" || len(q.SQL) > maxSQL || strings.ContainsRune(q.SQL, 0):
		return none, host.Invalid("sql", "length", "want a SELECT of at most %d bytes", maxSQL)
	case q.Rows < 0 || q.Rows > maxRows:
		return none, host.Invalid("rows", "range", "want 1 to %d", maxRows)
	case q.Rows == 0:
		q.Rows = defaultRows
	}
	leave, err := m.turns.Take(ctx, host.Who(ctx).ID)
	if err != nil {
		return none, err
	}
	defer leave()
	defer func() { // when SQLite runs out of memory the library panics and the connection is lost
		if p := recover(); p != nil {
			if e, ok := p.(error); !ok || e.Error() != "sqlite3: out of memory" {
				panic(p)
			}
			found, err = none, host.Refuse("query_limit", "%s", tooLarge)
		}
	}()
	for range 2 {
		if found, err = m.ask(ctx, q); !errors.Is(err, errDamaged) {
			break
		}
	}
	return found, err
}

// ask executes a query. It removes copies that are found to be damaged, and then returns errDamaged.
func (m *Mirror) ask(ctx context.Context, q host.Query) (found host.QueryResult, err error) {
	s := &session{mirror: m, ctx: ctx, running: ctx, left: m.within, attached: map[string]bool{}, only: q.Only}
	defer s.close()
	if err := s.open(); err != nil {
		return found, err
	}
	st, err := s.prepare(q.SQL)
	if err == nil {
		found, err = s.run(st, q.Rows)
		_ = st.Close() // run has returned its error
	}
	if errors.Is(err, errDamaged) {
		err = errors.Join(err, s.discard())
	}
	return found, err
}
