// Package sqlite keeps an SQLite file up to date. The driver is SQLite itself, compiled to WebAssembly and translated
// to Go, so a damaged file can make a query fail but do nothing else.
package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// Options configure a file.
type Options struct {
	// Table returns the name of a stream's table; nil means destination.StreamID.Table. Equal names are made unique.
	Table func(destination.StreamID) string
	// Volatile does without durability on power loss, for a file that can be made again.
	Volatile bool
	// Alone is for a file that no other program opens before it is complete. It does without the write-ahead log, which
	// lets others read.
	Alone bool
}

// busy is how long a writer waits for readers of the file, and vice versa.
const busy = 10 * time.Second

// Open opens and claims a file, which it creates if necessary. It may return destination.ErrClaimed or
// destination.ErrForeign.
func Open(ctx context.Context, path string, o destination.Owner, opt Options) (*Sink, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := touch(path)
	if err != nil {
		return nil, err
	}
	db, err := sqlite3.OpenFlags("file:"+escapePath(path), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, told(err)
	}
	s := &Sink{db: db, path: path, file: file, name: opt.Table}
	if s.name == nil {
		s.name = destination.StreamID.Table
	}
	if err := s.claim(ctx, o, opt); err != nil {
		return nil, errors.Join(told(err), db.Close())
	}
	return s, nil
}

// touch creates a file unless it exists.
func touch(path string) (os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is no regular file", destination.ErrForeign, path)
	}
	return fi, errors.Join(err, f.Close())
}

// escapePath returns a path for a URI of SQLite.
func escapePath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}

// A Sink is an open file.
type Sink struct {
	db    *sqlite3.Conn
	path  string
	file  os.FileInfo // of path when it was opened
	name  func(destination.StreamID) string
	epoch int64 // of this claim
}

// A claim is the owner of the file according to the meta table.
type claim struct {
	Host        string `json:"host"`
	Destination string `json:"destination"`
	Epoch       int64  `json:"epoch"`
}

func (s *Sink) claim(ctx context.Context, o destination.Owner, opt Options) error {
	defer s.interrupted(ctx)()
	if err := s.db.BusyTimeout(busy); err != nil {
		return err
	}
	safe, journal := "NORMAL", "WAL"
	if opt.Volatile {
		safe = "OFF"
	}
	if opt.Alone {
		journal = "MEMORY"
	}
	if err := s.db.Exec("PRAGMA journal_mode=" + journal + "; PRAGMA synchronous=" + safe); err != nil {
		return err
	}
	return s.step(func() error {
		if _, err := s.tableKind(destination.MetaTable); err != nil {
			return err
		}
		if err := s.db.Exec("CREATE TABLE IF NOT EXISTS " + destination.MetaTable +
			" (name TEXT PRIMARY KEY, value TEXT NOT NULL)"); err != nil {
			return err
		}
		var c claim
		if _, err := s.meta("owner", &c); err != nil {
			return fmt.Errorf("%w: %w", destination.ErrForeign, err)
		}
		if c.Host != "" && (c.Host != o.Host || c.Destination != o.Destination) && !o.TakeOver {
			return destination.ErrClaimed
		}
		s.epoch = c.Epoch + 1
		return s.setMeta("owner", claim{o.Host, o.Destination, s.epoch})
	})
}

// interrupted makes statements end with ctx until the returned function is called.
func (s *Sink) interrupted(ctx context.Context) func() {
	old := s.db.SetInterrupt(ctx)
	return func() { s.db.SetInterrupt(old) }
}

// step runs do in a transaction.
func (s *Sink) step(do func() error) (err error) {
	tx, err := s.db.BeginImmediate()
	if err != nil {
		return err
	}
	defer tx.End(&err)
	return do()
}

// own is like step but fails if another owner has claimed the file.
func (s *Sink) own(ctx context.Context, do func() error) error {
	// Nobody would see what is written to a removed file.
	switch now, err := os.Stat(s.path); {
	case err == nil && !os.SameFile(now, s.file), errors.Is(err, fs.ErrNotExist):
		return errors.New("the file was removed or replaced; the next try makes it anew")
	case err != nil:
		return err
	}
	defer s.interrupted(ctx)()
	return told(s.step(func() error {
		var c claim
		if _, err := s.meta("owner", &c); err != nil {
			return err
		}
		if c.Epoch != s.epoch {
			return destination.ErrFenced
		}
		return do()
	}))
}

// meta decodes a value of the meta table and reports whether there is one.
func (s *Sink) meta(name string, into any) (found bool, err error) {
	err = s.query("SELECT value FROM "+destination.MetaTable+" WHERE name = ?", func(st *sqlite3.Stmt) error {
		found = true
		return json.Unmarshal([]byte(st.ColumnText(0)), into)
	}, name)
	return found, err
}

func (s *Sink) setMeta(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.query("INSERT INTO "+destination.MetaTable+
		" VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", nil, name, string(text))
}

// query runs one statement with texts as its parameters and calls row, unless it is nil, for each row.
func (s *Sink) query(sql string, row func(*sqlite3.Stmt) error, args ...string) error {
	st, _, err := s.db.Prepare(sql)
	if err != nil {
		return err
	}
	defer st.Close()
	for i, a := range args {
		if err := st.BindText(i+1, a); err != nil {
			return err
		}
	}
	for st.Step() {
		if row != nil {
			if err := row(st); err != nil {
				return err
			}
		}
	}
	return st.Err()
}

// tableKind returns "table", "view" or the like for a name, "" if nothing has it.
func (s *Sink) tableKind(name string) (kind string, err error) {
	err = s.query("SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE", func(st *sqlite3.Stmt) error {
		kind = st.ColumnText(0)
		return nil
	}, name)
	return kind, err
}

const holdingPrefix = "stream:"

// Holdings implements destination.Sink.
func (s *Sink) Holdings(ctx context.Context) (map[destination.StreamID]destination.Holding, error) {
	defer s.interrupted(ctx)()
	return s.holdings()
}

func (s *Sink) holdings() (map[destination.StreamID]destination.Holding, error) {
	out := map[destination.StreamID]destination.Holding{}
	err := s.query("SELECT name, value FROM "+destination.MetaTable+" WHERE name LIKE 'stream:%'",
		func(st *sqlite3.Stmt) error {
			var h destination.Holding
			if err := json.Unmarshal([]byte(st.ColumnText(1)), &h); err != nil {
				return err
			}
			id, err := parseID(st.ColumnText(0))
			out[id] = h
			return err
		})
	return out, told(err)
}

func parseID(name string) (id destination.StreamID, err error) {
	return id, json.Unmarshal([]byte(strings.TrimPrefix(name, holdingPrefix)), &id)
}

func nameOf(id destination.StreamID) string {
	text, err := json.Marshal(id)
	if err != nil {
		panic(err) // two texts
	}
	return holdingPrefix + string(text)
}

// Apply implements destination.Sink.
func (s *Sink) Apply(ctx context.Context, b *destination.Batch) error {
	return s.own(ctx, func() error {
		if b.From == nil {
			if err := s.create(b); err != nil {
				return err
			}
		} else if err := s.alter(b); err != nil {
			return err
		}
		if err := s.write(ctx, b); err != nil {
			return err
		}
		return s.setMeta(nameOf(b.ID), b.To)
	})
}

var quote = sqlite3.QuoteIdentifier

// types maps types to those with which columns are declared. SQLite derives the affinity from them; for other programs
// they document the content.
var types = map[destination.Type]string{
	"": "", destination.Boolean: "BOOLEAN", destination.Integer: "INTEGER", destination.Number: "REAL",
	destination.Time: "TIMESTAMP", destination.JSON: "JSON", destination.Text: "TEXT",
}

// create names and creates the table of a batch.
func (s *Sink) create(b *destination.Batch) error {
	have, err := s.holdings()
	if err != nil {
		return err
	}
	taken := map[string]bool{destination.FilesTable: true, destination.MetaTable: true, destination.StreamsTable: true}
	for _, h := range have {
		taken[strings.ToLower(h.Table)] = true
	}
	b.To.Table = destination.UniqueName(unreserved(s.name(b.ID)), taken)
	if kind, err := s.tableKind(b.To.Table); err != nil || kind != "" {
		return errors.Join(err, foreign(b.To.Table))
	}
	columns := []string{"_key TEXT NOT NULL", "_version INTEGER NOT NULL", "_committed_at TIMESTAMP NOT NULL"}
	key := "PRIMARY KEY (_key)"
	switch b.To.Mode {
	case destination.History:
		columns = append(columns, "_valid_from TIMESTAMP NOT NULL", "_valid_to TIMESTAMP")
		key = "PRIMARY KEY (_key, _version)"
	default:
		columns = append(columns, "_deleted_at TIMESTAMP")
	}
	for _, c := range b.To.Shape.Columns {
		columns = append(columns, quote(c.Name)+" "+types[c.Type])
	}
	columns = append(columns, destination.RestColumn+" JSON", key)
	return s.db.Exec("CREATE TABLE " + quote(b.To.Table) + " (" + strings.Join(columns, ", ") + ")")
}

// unreserved returns a name that neither SQLite nor Sluice reserves for tables of its own.
func unreserved(name string) string {
	if lower := strings.ToLower(name); strings.HasPrefix(lower, "sqlite_") || strings.HasPrefix(lower, "_sluice") {
		return "_" + name
	}
	return name
}

func foreign(table string) error {
	return fmt.Errorf("%w: %s", destination.ErrForeign, abi.Clean(table))
}

// alter adds new columns and widens others.
func (s *Sink) alter(b *destination.Batch) error {
	table := quote(b.To.Table)
	taken := map[string]bool{}
	for _, c := range b.To.Shape.Columns {
		taken[strings.ToLower(c.Name)] = true
	}
	old := destination.UniqueName("_sluice_was", taken)
	for i, c := range b.To.Shape.Columns {
		if i >= len(b.From.Shape.Columns) {
			if err := s.db.Exec("ALTER TABLE " + table + " ADD COLUMN " + quote(c.Name) + " " + types[c.Type]); err != nil {
				return err
			}
			continue
		}
		if was := b.From.Shape.Columns[i].Type; was != c.Type {
			if err := s.widen(table, c, was, quote(old)); err != nil {
				return err
			}
		}
	}
	return nil
}

// widen changes the type of a column. SQLite cannot do that, so a new column replaces it, which is named old until
// then.
func (s *Sink) widen(table string, c destination.Column, was destination.Type, old string) error {
	name := quote(c.Name)
	values := old
	switch {
	case c.Type == destination.Text && was == destination.Boolean:
		values = "CASE " + old + " WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
	case c.Type == destination.Text:
		values = "CAST(" + old + " AS TEXT)"
	case c.Type == destination.Number:
		values = "CAST(" + old + " AS REAL)"
	}
	for _, sql := range []string{
		"ALTER TABLE " + table + " RENAME COLUMN " + name + " TO " + old,
		"ALTER TABLE " + table + " ADD COLUMN " + name + " " + types[c.Type],
		"UPDATE " + table + " SET " + name + " = " + values,
		"ALTER TABLE " + table + " DROP COLUMN " + old,
	} {
		if err := s.db.Exec(sql); err != nil {
			return err
		}
	}
	return nil
}

// write writes the rows of a batch.
func (s *Sink) write(ctx context.Context, b *destination.Batch) error {
	w := &writer{shape: b.To.Shape, mode: b.To.Mode}
	defer w.close()
	if err := w.prepare(s.db, quote(b.To.Table)); err != nil {
		return err
	}
	for i := range b.Rows {
		if i%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.row(&b.Rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// A writer holds the statements for one batch.
type writer struct {
	shape  *destination.Shape
	mode   destination.Mode
	put    *sqlite3.Stmt       // inserts or replaces a row
	remove *sqlite3.Stmt       // deletes a key's row or, by mode, ends its newest version or marks it as deleted
	args   []destination.Value // of the last row
}

func (w *writer) prepare(db *sqlite3.Conn, table string) (err error) {
	names := []string{"_key", "_version", "_committed_at"}
	if w.mode == destination.History {
		names = append(names, "_valid_from", "_valid_to")
	} else {
		names = append(names, "_deleted_at")
	}
	for _, c := range w.shape.Columns {
		names = append(names, quote(c.Name))
	}
	names = append(names, destination.RestColumn)
	put := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (?" +
		strings.Repeat(", ?", len(names)-1) + ") ON CONFLICT DO UPDATE SET "
	var sets []string
	for _, n := range names[1:] {
		sets = append(sets, n+" = excluded."+n)
	}
	if w.put, _, err = db.PrepareFlags(put+strings.Join(sets, ", "), sqlite3.PREPARE_PERSISTENT); err != nil {
		return err
	}
	remove := "DELETE FROM " + table + " WHERE _key = ?"
	switch w.mode {
	case destination.History:
		remove = "UPDATE " + table + " SET _valid_to = ?2 WHERE _key = ?1 AND _valid_to IS NULL"
	case destination.CurrentDeleted:
		remove = "UPDATE " + table + " SET _version = ?3, _committed_at = ?2, _deleted_at = ?2 WHERE _key = ?1"
	}
	w.remove, _, err = db.PrepareFlags(remove, sqlite3.PREPARE_PERSISTENT)
	return err
}

func (w *writer) close() {
	for _, st := range []*sqlite3.Stmt{w.put, w.remove} {
		if st != nil {
			_ = st.Close() // the statement has already returned its error
		}
	}
}

func (w *writer) row(r *destination.Row) error {
	at := stamp(r.At)
	if r.Deleted || w.mode == destination.History {
		if err := run(w.remove, text(r.Key), text(at), integer(int64(r.Version))); err != nil { // #nosec G115 -- versions count changes
			return err
		}
	}
	if r.Deleted && w.mode == destination.Current {
		return nil
	}
	if r.Deleted && w.mode == destination.CurrentDeleted && w.remove.Conn().Changes() > 0 {
		return nil // the row keeps the collected data
	}
	if r.Deleted && w.mode == destination.History {
		return nil
	}
	args := append(w.args[:0], text(r.Key), integer(int64(r.Version)), text(at)) // #nosec G115 -- versions count changes
	switch {
	case w.mode == destination.History:
		args = append(args, text(at), destination.Value{})
	case r.Deleted:
		args = append(args, text(at))
	default:
		args = append(args, destination.Value{})
	}
	for i, c := range w.shape.Columns {
		args = append(args, r.Value(i, c))
	}
	rest := destination.Value{}
	if r.Rest != "" {
		rest = text(r.Rest)
	}
	w.args = append(args, rest)
	return run(w.put, w.args...)
}

func text(s string) destination.Value { return destination.Value{Type: destination.Text, Text: s} }

func integer(n int64) destination.Value {
	return destination.Value{Type: destination.Integer, Integer: n}
}

// stamp formats an instant so that SQLite's functions can read it and it sorts by time.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// run runs a statement once. It ignores arguments beyond the statement's parameters.
func run(st *sqlite3.Stmt, args ...destination.Value) error {
	for i, v := range args[:min(len(args), st.BindCount())] {
		if err := bind(st, i+1, v); err != nil {
			return err
		}
	}
	st.Step()
	return st.Reset()
}

func bind(st *sqlite3.Stmt, i int, v destination.Value) error {
	switch v.Type {
	case "":
		return st.BindNull(i)
	case destination.Boolean, destination.Integer:
		return st.BindInt64(i, v.Integer)
	case destination.Number:
		return st.BindFloat(i, v.Number)
	case destination.Time:
		return st.BindText(i, stamp(time.UnixMicro(v.Integer)))
	}
	return st.BindText(i, v.Text)
}

// Clear implements destination.Sink.
func (s *Sink) Clear(ctx context.Context, id destination.StreamID) error {
	return s.own(ctx, func() error {
		have, err := s.holdings()
		h, there := have[id]
		if err != nil || !there {
			return err
		}
		if err := s.db.Exec("DROP TABLE IF EXISTS " + quote(h.Table)); err != nil {
			return err
		}
		return s.query("DELETE FROM "+destination.MetaTable+" WHERE name = ?", nil, nameOf(id))
	})
}

const createStreams = "CREATE TABLE " + destination.StreamsTable +
	" (connection TEXT NOT NULL, stream TEXT NOT NULL, connector TEXT, version TEXT, table_name TEXT, records INTEGER, deleted INTEGER," +
	" mark INTEGER, last_run TEXT, ended_at TIMESTAMP, left_out BOOLEAN, synced_at TIMESTAMP, PRIMARY KEY (connection, stream))"

// emptyStreams creates the table of streams or empties it; it is not dropped, so that views of it stay.
func (s *Sink) emptyStreams() error {
	sql := ""
	err := s.query("SELECT coalesce(sql, type) FROM sqlite_master WHERE name = ? COLLATE NOCASE",
		func(st *sqlite3.Stmt) error {
			sql = st.ColumnText(0)
			return nil
		}, destination.StreamsTable)
	switch {
	case err != nil:
		return err
	case sql == "":
		return s.db.Exec(createStreams)
	case sql != createStreams:
		return foreign(destination.StreamsTable)
	}
	return s.db.Exec("DELETE FROM " + destination.StreamsTable)
}

// Describe implements destination.Sink.
func (s *Sink) Describe(ctx context.Context, streams []destination.Described) error {
	return s.own(ctx, func() error {
		if err := s.emptyStreams(); err != nil {
			return err
		}
		put, _, err := s.db.Prepare("INSERT INTO " + destination.StreamsTable +
			" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
		if err != nil {
			return err
		}
		defer put.Close()
		for _, d := range streams {
			ended := destination.Value{}
			if !d.EndedAt.IsZero() {
				ended = text(stamp(d.EndedAt))
			}
			partial := int64(slices.Index([]bool{false, true}, d.Partial))
			// #nosec G115 -- they count what is on a disk
			if err := run(put, text(string(d.Connection)), text(string(d.Stream)), text(d.Connector), text(d.Version),
				text(d.Table), integer(int64(d.Records)),
				integer(int64(d.Deleted)), integer(int64(d.Mark)), text(d.LastRun), ended, integer(partial),
				text(stamp(d.SyncedAt))); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close implements destination.Sink.
func (s *Sink) Close() error { return s.db.Close() }
