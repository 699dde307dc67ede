package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"github.com/sluicehost/sluice/store"
)

// Size of one step of indexing.
const (
	pageRows  = 5000
	stepRows  = 10_000
	stepBytes = 8 << 20
	segment   = 16 << 20 // bytes that FTS5 buffers before it writes
)

// An index is the index file of one connection. Each stream has a table of words, without the texts, and one of keys.
// Both use row ids that grow with each change, so that the newest record is last. An index is not safe for concurrent
// use.
type index struct {
	db    *sqlite3.Conn
	path  string
	file  os.FileInfo
	parts map[store.Stream]part
}

// A part is the index of one stream.
type part struct {
	id    int64
	since time.Time // when the connection was created
	mark  uint64    // changes up to this version are indexed
}

// open opens the index file of a connection, which it creates if necessary.
func open(path string) (_ *index, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	db, err := sqlite3.OpenContext(sqlite3.WithMaxMemory(context.Background(), maxMemory), "file:"+escaped)
	if err != nil {
		return nil, err
	}
	x := &index{db: db, path: path, file: info, parts: map[store.Stream]part{}}
	if err := x.begin(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return x, nil
}

// layout is the version of the file's schema. Files of other versions are made again.
const layout = 2

var errLayout = errors.New("the index was made by another version")

func (x *index) begin() error {
	if err := fts5.Register(x.db); err != nil {
		return err
	}
	if err := x.db.Exec(
		"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-8000; PRAGMA trusted_schema=OFF"); err != nil {
		return err
	}
	version := int64(0)
	if err := x.rows("PRAGMA user_version", func(st *sqlite3.Stmt) { version = st.ColumnInt64(0) }); err != nil {
		return err
	}
	switch version {
	case 0:
		if err := x.db.Exec(fmt.Sprintf(
			"CREATE TABLE parts (id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL UNIQUE, since INTEGER NOT NULL, mark INTEGER NOT NULL); PRAGMA user_version=%d", layout)); err != nil {
			return err
		}
	case layout:
	default:
		return errLayout
	}
	return x.rows("SELECT stream, id, since, mark FROM parts", func(st *sqlite3.Stmt) {
		x.parts[store.Stream(st.ColumnText(0))] = part{id: st.ColumnInt64(1), since: time.Unix(0, st.ColumnInt64(2)), mark: uint64(st.ColumnInt64(3))} // #nosec G115 -- it was one
	})
}

func (x *index) close() error { return x.db.Close() }

// same reports whether path still names the file that was opened.
func (x *index) same() bool {
	info, err := os.Stat(x.path)
	return err == nil && os.SameFile(info, x.file)
}

// rows runs a statement with args as its parameters and calls row for each row.
func (x *index) rows(sql string, row func(*sqlite3.Stmt), args ...any) error {
	st, _, err := x.db.Prepare(sql)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := bind(st, args...); err != nil {
		return err
	}
	for st.Step() {
		row(st)
	}
	return st.Err()
}

func bind(st *sqlite3.Stmt, args ...any) (err error) {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			err = errors.Join(err, st.BindText(i+1, a))
		case int64:
			err = errors.Join(err, st.BindInt64(i+1, a))
		}
	}
	return err
}

func (x *index) exec(sql string, args ...any) error {
	return x.rows(sql, func(*sqlite3.Stmt) {}, args...)
}

// step runs do in a transaction.
func (x *index) step(do func() error) (err error) {
	tx, err := x.db.BeginImmediate()
	if err != nil {
		return err
	}
	defer tx.End(&err)
	return do()
}

// refresh brings the index of a connection up to date. It calls grow before each step.
func (x *index) refresh(ctx context.Context, src Store, c store.Connection, grow func() error) error {
	streams, err := src.Streams(ctx, c.ID)
	if err != nil {
		return err
	}
	old := x.db.SetInterrupt(ctx)
	defer x.db.SetInterrupt(old)
	there := map[store.Stream]bool{}
	for _, s := range streams {
		there[s.Stream] = true
		p, ok := x.parts[s.Stream]
		if ok && (!p.since.Equal(c.CreatedAt) || p.mark > s.LastVersion) {
			if err := x.drop(s.Stream); err != nil {
				return err
			}
			p, ok = part{}, false
		}
		if ok && p.mark == s.LastVersion {
			continue
		}
		if err := x.bring(ctx, src, c, s, grow); err != nil {
			return err
		}
	}
	for stream := range x.parts {
		if !there[stream] { // the stream was erased
			if err := x.drop(stream); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *index) drop(stream store.Stream) error {
	id := x.parts[stream].id
	err := x.step(func() error {
		if err := x.db.Exec(fmt.Sprintf("DROP TABLE w%d; DROP TABLE k%d", id, id)); err != nil {
			return err
		}
		return x.exec("DELETE FROM parts WHERE id = ?", id)
	})
	if err == nil {
		delete(x.parts, stream)
	}
	return err
}

// create creates the tables of a stream. Words are inserted already folded and separated, so the simplest tokenizer
// suffices.
func (x *index) create(stream store.Stream, since time.Time) (p part, err error) {
	p = part{since: since}
	err = x.step(func() error {
		if err := x.exec("INSERT INTO parts (stream, since, mark) VALUES (?, ?, 0)", string(stream),
			since.UnixNano()); err != nil {
			return err
		}
		p.id = x.db.LastInsertRowID()
		return x.db.Exec(fmt.Sprintf(`CREATE VIRTUAL TABLE w%[1]d USING fts5(words, content='', contentless_delete=1, tokenize='ascii', prefix=%[2]d);
			INSERT INTO w%[1]d (w%[1]d, rank) VALUES ('hashsize', %[3]d);
			CREATE TABLE k%[1]d (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, version INTEGER NOT NULL)`, p.id, minPrefix, segment))
	})
	if err == nil {
		x.parts[stream] = p
	}
	return p, err
}

// A change is a record as it is indexed.
type change struct {
	key, words string
	at         int64 // time of the commit, in microseconds since 1970
	version    uint64
}

// A reading is the input of one step.
type reading struct {
	changes []change
	mark    uint64
	more    bool
	err     error
}

// bring indexes the changes of a stream. It reads the next step while it writes one.
func (x *index) bring(ctx context.Context, src Store, c store.Connection, s store.StreamStats,
	grow func() error) error {
	p, ok := x.parts[s.Stream]
	if !ok {
		var err error
		if p, err = x.create(s.Stream, c.CreatedAt); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ahead := func(mark uint64) <-chan reading {
		next := make(chan reading, 1)
		go func() { next <- read(ctx, src, c.ID, s.Stream, mark) }()
		return next
	}
	for next := ahead(p.mark); next != nil; {
		r := <-next
		if next = nil; r.err != nil {
			return r.err
		}
		if r.more {
			next = ahead(r.mark)
		}
		err := grow()
		if err == nil {
			err = x.write(s.Stream, r)
		}
		if err != nil {
			cancel()
			if next != nil {
				<-next
			}
			return err
		}
	}
	return nil
}

// read reads the changes after a mark, up to the size of one step.
func read(ctx context.Context, src Store, c store.ConnectionID, stream store.Stream, mark uint64) (r reading) {
	r.mark = mark
	var text strings.Builder
	for size := 0; len(r.changes) < stepRows && size < stepBytes; {
		page, err := src.Records(ctx,
			store.RecordQuery{Connection: c, Stream: stream, After: r.mark, Deleted: true, Limit: pageRows})
		if err != nil {
			return reading{err: err}
		}
		for _, record := range page.Records {
			text.Reset()
			if !record.Deleted {
				indexed(&text, record.Data)
			}
			r.changes = append(r.changes, change{record.Key, text.String(), record.IngestedAt.UnixMicro(), record.Version})
			size += text.Len() + len(record.Key)
		}
		r.mark = max(r.mark, page.After)
		if r.more = page.More; !r.more {
			r.mark = max(r.mark, page.Version) // skip versions that are superseded
			break
		}
	}
	return r
}

// write writes one step.
func (x *index) write(stream store.Stream, r reading) error {
	p := x.parts[stream]
	err := x.step(func() error {
		if err := x.change(p.id, r.changes); err != nil {
			return err
		}
		return x.exec("UPDATE parts SET mark = ? WHERE id = ?", int64(r.mark), p.id) // #nosec G115 -- versions count changes
	})
	if err == nil {
		p.mark = r.mark
		x.parts[stream] = p
	}
	return err
}

// change removes all changed records before it inserts any, because FTS5 starts a new segment whenever row ids do not
// grow.
func (x *index) change(id int64, changes []change) error {
	gone, err := x.forget(id, changes)
	if err != nil {
		return err
	}
	var all [3]*sqlite3.Stmt
	for i, sql := range []string{"DELETE FROM w%d WHERE rowid = ?", "INSERT INTO k%d (key, at, version) VALUES (?, ?, ?)",
		"INSERT INTO w%d (rowid, words) VALUES (?, ?)"} {
		st, _, err := x.db.PrepareFlags(fmt.Sprintf(sql, id), sqlite3.PREPARE_PERSISTENT)
		if err != nil {
			return err
		}
		defer st.Close()
		all[i] = st
	}
	slices.Sort(gone)
	for _, row := range gone {
		if err := once(all[0], row); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if c.words == "" {
			continue
		}
		if err := once(all[1], c.key, c.at, int64(c.version)); err != nil { // #nosec G115 -- versions count changes
			return err
		}
		if err := once(all[2], x.db.LastInsertRowID(), c.words); err != nil {
			return err
		}
	}
	return nil
}

// forget removes keys and returns their row ids.
func (x *index) forget(id int64, changes []change) (gone []int64, err error) {
	st, _, err := x.db.PrepareFlags(fmt.Sprintf("DELETE FROM k%d WHERE key = ? RETURNING id", id),
		sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	for _, c := range changes {
		if err := bind(st, c.key); err != nil {
			return nil, err
		}
		if st.Step() {
			gone = append(gone, st.ColumnInt64(0))
		}
		if err := st.Reset(); err != nil {
			return nil, err
		}
	}
	return gone, nil
}

// once executes a statement that returns no rows.
func once(st *sqlite3.Stmt, args ...any) error {
	if err := bind(st, args...); err != nil {
		return err
	}
	st.Step()
	return st.Reset()
}
