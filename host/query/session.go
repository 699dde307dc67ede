package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/sqlite"
	"github.com/sluicehost/sluice/store"
)

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
	during := func() context.Context { return s.running }
	s.scratch = newScratch(s.mirror.scratch, during)
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
	if err := bounded(s.db, during); err != nil {
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

var unknown = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?i)(?:no such table: (_?[a-z0-9][a-z0-9_-]{0,63})\.|unknown database "?(_?[a-z0-9][a-z0-9_-]{0,63})"?$)`)
})

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
		m := unknown().FindStringSubmatch(err.Error())
		if m == nil {
			return nil, s.wrong(err)
		}
		name := strings.ToLower(m[1] + m[2])
		if s.attached[name] {
			return nil, s.wrong(err)
		}
		if err := s.attach(name); err != nil {
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
	case s.more(tail):
		_ = st.Close() // it did not run
		return nil, host.Refuse("query_invalid", "want one statement; there is something behind the first")
	case !st.ReadOnly() || st.ColumnCount() == 0:
		_ = st.Close() // it did not run
		return nil, host.Refuse("query_denied", "a query may only read")
	}
	return st, nil
}

// more reports whether there is more than spaces and comments behind a statement.
func (s *session) more(tail string) bool {
	tail = strings.TrimLeft(tail, " \t\r\n;")
	if tail == "" {
		return false
	}
	defer s.timed()()
	st, _, err := s.db.Prepare(tail)
	if st != nil {
		_ = st.Close() // it did not run
	}
	return st != nil || err != nil
}

// errDamaged reports that a copy was found damaged while a statement read it.
var errDamaged = errors.New("the copy of a connection is damaged")

// discard removes the copies that the session has read.
func (s *session) discard() (err error) {
	err = s.db.Close()
	s.db = nil
	for _, f := range s.files {
		f.Lock()
		err = errors.Join(err, f.Remove())
		f.Unlock()
	}
	return err
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
	case sqlite.IsFull(err):
		return host.Refuse("store_no_space",
			"the disk is full, and the query has to sort on it; free some space and ask again")
	case errors.Is(err, sqlite3.TOOBIG):
		return host.Refuse("query_limit",
			"a value or row of the query has more than %d MiB; take a part of it with substr, or fewer rows", maxValue>>20)
	case errors.Is(err, sqlite3.NOMEM):
		return host.Refuse("query_limit", "%s", tooLarge)
	case errors.Is(err, sqlite3.AUTH):
		return host.Refuse("query_denied", "a query may read what was collected, and nothing else")
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB):
		return errDamaged
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "sqlite3: "), "SQL logic error: ")
	if strings.HasPrefix(text, "no such table") {
		text += "; tables are named CONNECTION.STREAM, and " + s.mirror.lister + " lists them"
	}
	return host.Refuse("query_invalid", "%s", abi.Cut(abi.Clean(text), 500))
}

// attach attaches the copy of a connection. A connection that may not be seen is treated like one that does not exist.
func (s *session) attach(name string) error {
	id := store.ConnectionID(strings.TrimPrefix(name, "_"))
	c, err := s.mirror.store.Connection(s.ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (c.Temporary || s.only != nil && !slices.Contains(s.only, id)) {
		return host.Refuse("query_invalid",
			"there is no connection %s; tables are named CONNECTION.STREAM, and %s lists them", abi.Clean(name),
			s.mirror.lister)
	}
	if err != nil {
		return err
	}
	if name != schemaOf(id) {
		return host.Refuse("query_invalid", "the tables of connection %s are named %s.STREAM in SQL", id, schemaOf(id))
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
