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
	"encoding/json"
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
	Store   Store
	Dir     string       // directory of the copies; "" for a temporary one
	Most    int64        // maximum bytes of all copies; 0 for no limit
	Setting string       // name of the setting for Most
	Room    func() error // returns an error while the disk is nearly full; may be nil
	Turns   *cache.Turns // shared with other mirrors; nil allows AtOnce for this one
}

// A Mirror implements host.Queries on copies of all connections. It is safe for concurrent use.
type Mirror struct {
	store  Store
	copies *cache.Dir[struct{}]
	turns  *cache.Turns

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
	return &Mirror{store: o.Store, turns: cmp.Or(o.Turns, cache.NewTurns(AtOnce)), within: within, scratch: maxScratch,
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
		shapes, err := m.shapes(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, s := range streams {
			t := host.Table{Name: word(string(c.ID)) + "." + word(string(s.Stream)), ConnectionID: string(c.ID),
				Stream: string(s.Stream), Columns: []host.QueryColumn{},
				Records: s.Live, Bytes: s.Bytes, UpdatedAt: s.UpdatedAt}
			if shape := shapes[s.Stream]; shape != nil {
				for _, col := range shape.Columns {
					t.Columns = append(t.Columns, host.QueryColumn{Name: col.Name, Type: string(col.Type)})
				}
			}
			out = append(out, t)
		}
	}
	return out, nil
}

var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// word returns a name as it is written in a statement.
func word(name string) string {
	if plain.MatchString(name) && !keyword[strings.ToUpper(name)] {
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

// shapes returns the columns of a connection's tables.
func (m *Mirror) shapes(ctx context.Context, c store.Connection) (map[store.Stream]*destination.Shape, error) {
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
	have, err := db.Holdings(ctx)
	out := map[store.Stream]*destination.Shape{}
	for id, h := range have {
		out[id.Stream] = h.Shape
	}
	return out, err
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
	if errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, destination.ErrForeign) {
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
	case full(err):
		return nil, host.Refuse("store_no_space",
			"the disk is full, so connection %s cannot be copied for queries; free some space and ask again", c.ID)
	}
	return nil, fmt.Errorf("copy connection %s for queries: %w", c.ID, err)
}

// full reports whether an error says that the disk is full.
func full(err error) bool {
	return errors.Is(err, sqlite3.FULL) || errors.Is(err, sqlite3.IOERR_WRITE) || errors.Is(err, syscall.ENOSPC)
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
	s := &session{mirror: m, ctx: ctx, running: ctx, left: m.within, attached: map[string]bool{}, only: q.Only}
	defer s.close()
	if err := s.open(); err != nil {
		return none, err
	}
	st, err := s.prepare(q.SQL)
	if err != nil {
		return none, err
	}
	defer st.Close()
	return s.run(st, q.Rows)
}

// A session executes one statement.
type session struct {
	mirror   *Mirror
	ctx      context.Context
	db       *sqlite3.Conn
	attached map[string]bool
	files    []*duplicate // the attached ones
	scratch  *scratch
	only     []store.ConnectionID
	calls    int             // of functions, in the statement being prepared
	denied   string          // what the authorizer denied
	left     time.Duration   // time left for the statement
	running  context.Context // of the statement, while it is compiled or executed
}

func (s *session) open() (err error) {
	s.scratch = newScratch(s.mirror.scratch)
	s.db, err = sqlite3.OpenContext(sqlite3.WithMaxMemory(s.ctx, maxMemory), "file::memory:?vfs="+s.scratch.name)
	if err != nil {
		return err
	}
	s.db.Limit(sqlite3.LIMIT_EXPR_DEPTH, 200)
	s.db.Limit(sqlite3.LIMIT_COMPOUND_SELECT, 50)
	s.db.Limit(sqlite3.LIMIT_LENGTH, maxValue)
	s.db.Limit(sqlite3.LIMIT_VDBE_OP, maxSteps)
	s.db.Limit(sqlite3.LIMIT_FUNCTION_ARG, maxArguments)
	if err := s.db.BusyTimeout(s.mirror.within); err != nil { // a writer may be closing a copy
		return err
	}
	if err := s.db.Exec("PRAGMA query_only = ON; PRAGMA temp_store = FILE; PRAGMA trusted_schema = OFF"); err != nil {
		return err
	}
	if err := bounded(s.db, func() context.Context { return s.running }); err != nil {
		return err
	}
	return s.db.SetAuthorizer(s.authorize)
}

func (s *session) close() {
	if s.db != nil {
		_ = s.db.Close() // it was only in memory
	}
	s.scratch.end()
	for _, f := range s.files {
		f.Release()
	}
}

// attaching is the value of denied while the session itself attaches a file.
const attaching = "\x00"

// authorize lets a statement read tables and call allowed functions, and nothing else.
func (s *session) authorize(action sqlite3.AuthorizerActionCode, name3, name4, schema,
	_ string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_READ:
		if strings.HasPrefix(strings.ToLower(name3), "_sluice") {
			s.denied = "the host's own tables"
			return sqlite3.AUTH_DENY
		}
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_FUNCTION:
		if !allowed[strings.ToLower(name4)] {
			s.denied = "the function " + name4
			return sqlite3.AUTH_DENY
		}
		if s.calls++; s.calls > maxCalls {
			s.denied = fmt.Sprintf("to call functions more than %d times", maxCalls)
			return sqlite3.AUTH_DENY
		}
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_ATTACH:
		if s.denied == attaching {
			return sqlite3.AUTH_OK
		}
	}
	s.denied = "to do more than that"
	return sqlite3.AUTH_DENY
}

var unknown = regexp.MustCompile(
	`(?:no such table: ([a-z0-9][a-z0-9_-]{0,63})\.|unknown database "?([a-z0-9][a-z0-9_-]{0,63})"?$)`)

// prepare compiles the statement and attaches the connections that it names.
func (s *session) prepare(sql string) (*sqlite3.Stmt, error) {
	for {
		s.denied, s.calls = "", 0
		stop := s.timed()
		st, tail, err := s.db.Prepare(sql)
		stop()
		if err == nil {
			return s.single(st, tail)
		}
		if s.denied != "" {
			return nil, host.Refuse("query_denied", "a query may read what was collected, and this one wants %s",
				abi.Clean(s.denied))
		}
		m := unknown.FindStringSubmatch(err.Error())
		if m == nil || s.attached[m[1]+m[2]] {
			return nil, s.wrong(err)
		}
		if err := s.attach(m[1] + m[2]); err != nil {
			return nil, err
		}
	}
}

// timed limits the statement to its remaining time until stop is called. Waiting for copies does not count.
func (s *session) timed() (stop func()) {
	ctx, cancel := context.WithTimeout(s.ctx, s.left)
	began := time.Now()
	s.running = ctx
	s.db.SetInterrupt(ctx)
	return func() {
		cancel()
		s.left -= time.Since(began)
		s.running = s.ctx
		s.db.SetInterrupt(s.ctx)
	}
}

func (s *session) single(st *sqlite3.Stmt, tail string) (*sqlite3.Stmt, error) {
	switch {
	case st == nil:
		return nil, host.Refuse("query_invalid", "there is no statement in the query")
	case strings.Trim(tail, " \t\r\n;") != "":
		_ = st.Close() // it did not run
		return nil, host.Refuse("query_invalid", "want one statement; there is something behind the first")
	case !st.ReadOnly() || st.ColumnCount() == 0:
		_ = st.Close() // it did not run
		return nil, host.Refuse("query_denied", "a query may only read")
	}
	return st, nil
}

var tooLarge = fmt.Sprintf(
	"the query needs more than %d MiB of memory, or too many steps; narrow it with WHERE, or ask for less in one statement", maxMemory>>20)

// wrong converts an error of a statement to one for its author.
func (s *session) wrong(err error) error {
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case errors.Is(err, sqlite3.INTERRUPT):
		return host.Refuse("query_limit", "the query took longer than %s; narrow it with WHERE", s.mirror.within)
	case errors.Is(err, sqlite3.FULL) && s.scratch.over():
		return host.Refuse("query_limit", "the query sorts more than %d MiB; narrow it with WHERE, or order by less",
			s.scratch.most>>20)
	case full(err):
		return host.Refuse("store_no_space",
			"the disk is full, and the query has to sort on it; free some space and ask again")
	case errors.Is(err, sqlite3.TOOBIG):
		return host.Refuse("query_limit",
			"a value or row of the query has more than %d MiB; take a part of it with substr, or fewer rows", maxValue>>20)
	case errors.Is(err, sqlite3.NOMEM):
		return host.Refuse("query_limit", "%s", tooLarge)
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "sqlite3: "), "SQL logic error: ")
	if strings.HasPrefix(text, "no such table") {
		text += "; tables are named CONNECTION.STREAM, and sluice tables lists them"
	}
	return host.Refuse("query_invalid", "%s", abi.Cut(abi.Clean(text), 500))
}

// attach attaches the copy of a connection. A connection that may not be seen is treated like one that does not exist.
func (s *session) attach(name string) error {
	id := store.ConnectionID(name)
	c, err := s.mirror.store.Connection(s.ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (c.Temporary || s.only != nil && !slices.Contains(s.only, id)) {
		return host.Refuse("query_invalid",
			"there is no connection %s; tables are named CONNECTION.STREAM, and sluice tables lists them", abi.Clean(name))
	}
	if err != nil {
		return err
	}
	if len(s.attached) == maxJoined {
		return host.Refuse("query_limit", "a query sees at most %d connections", maxJoined)
	}
	f, err := s.mirror.refresh(s.ctx, c)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	s.attached[name] = true
	s.denied = attaching
	defer func() { s.denied = "" }()
	return s.db.Exec("ATTACH " + sqlite3.Quote(sqlite.ReadOnlyURI(f.Path)+"&vfs=os") + " AS " +
		sqlite3.QuoteIdentifier(name))
}

// run executes the statement and returns up to most rows.
func (s *session) run(st *sqlite3.Stmt, most int) (host.QueryResult, error) {
	defer s.timed()()
	out := host.QueryResult{Columns: []host.QueryColumn{}, Rows: [][]json.RawMessage{}}
	for i := range st.ColumnCount() {
		out.Columns = append(out.Columns, host.QueryColumn{Name: st.ColumnName(i), Type: typeOf(st.ColumnDeclType(i))})
	}
	for size := 0; st.Step(); {
		if len(out.Rows) == most || size > maxAnswer || (len(out.Rows)+1)*len(out.Columns) > maxCells {
			out.Truncated = true
			return out, nil
		}
		row, before := make([]json.RawMessage, len(out.Columns)), size
		for i := range row {
			row[i] = value(st, i, out.Columns[i].Type)
			if size += len(row[i]); size-before > maxAnswer {
				return host.QueryResult{},
					host.Refuse("query_limit",
						"a row of the query has more than %d MiB; take fewer columns, or parts of them with substr", maxAnswer>>20)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	if err := st.Err(); err != nil {
		return host.QueryResult{}, s.wrong(err)
	}
	return out, nil
}

// typeOf returns the type of a column by its declaration.
func typeOf(declared string) string {
	switch declared {
	case "TIMESTAMP":
		return string(destination.Time)
	case "REAL":
		return string(destination.Number)
	case "BOOLEAN", "INTEGER", "TEXT", "JSON":
		return strings.ToLower(declared)
	}
	return ""
}

func value(st *sqlite3.Stmt, i int, typ string) json.RawMessage {
	switch st.ColumnType(i) {
	case sqlite3.INTEGER:
		if typ == string(destination.Boolean) {
			return json.RawMessage(fmt.Sprint(st.ColumnInt64(i) != 0))
		}
		return json.RawMessage(fmt.Sprint(st.ColumnInt64(i)))
	case sqlite3.FLOAT:
		if b, err := json.Marshal(st.ColumnFloat(i)); err == nil {
			return b
		}
	case sqlite3.TEXT:
		if b, err := json.Marshal(st.ColumnText(i)); err == nil {
			return b
		}
	case sqlite3.BLOB:
		b, _ := json.Marshal(st.ColumnBlob(i, nil)) // base64
		return b
	}
	return json.RawMessage("null")
}
