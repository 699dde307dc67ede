package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehost/sluice/host/destination"
)

// A Sink is a schema on a server, accessed over one connection. If that breaks, the next call reconnects.
type Sink struct {
	address *address
	conn    *pgconn.PgConn
	epoch   int64 // of this claim
	// fresh marks streams whose table this sink created and of which no batch so far had a key that was already there.
	// Their rows are copied straight into the table.
	fresh map[destination.StreamID]bool
}

var _ destination.Sink = (*Sink)(nil)

// Time limits of a whole step, and of its longest statement, which is a change of types because that rewrites the whole
// table.
const (
	stepTimeout  = 7 * time.Hour
	alterTimeout = "6h"
)

// session lists the settings of a connection, as far as the server knows them. A server whose client is gone must not
// keep the row of the fence locked.
var session = [][2]string{
	{"statement_timeout", "15min"},
	{"lock_timeout", "30s"},
	{"idle_in_transaction_session_timeout", "2min"},
	{"client_connection_check_interval", "10s"},
	{"tcp_user_timeout", "60s"},
	{"client_min_messages", "error"},
	{"search_path", "pg_catalog, pg_temp"},
	{"standard_conforming_strings", "on"},
	{"extra_float_digits", "1"},
	{"timezone", "UTC"},
}

// connect connects, unless there is a usable connection.
func (s *Sink) connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() && s.conn.TxStatus() == 'I' {
		return nil
	}
	if s.conn != nil {
		s.drop(s.conn)
		s.conn = nil
	}
	limited, cancel := context.WithTimeout(ctx, maxConnectTimeout)
	defer cancel()
	conn, err := pgconn.ConnectConfig(limited, s.address.config)
	if err != nil {
		return s.told(ctx, err)
	}
	s.conn = conn
	var values []string
	for _, v := range session {
		values = append(values, "("+literal(v[0])+","+literal(v[1])+")")
	}
	_, err = s.query(limited,
		"SELECT pg_catalog.set_config(s.name, v.value, false) FROM pg_catalog.pg_settings s JOIN (VALUES "+
			strings.Join(values, ",")+") v (name, value) ON v.name = pg_catalog.lower(s.name)")
	if err == nil {
		err = s.suited()
	}
	if err != nil {
		s.drop(conn)
		s.conn = nil
	}
	return s.told(ctx, err)
}

// suited returns an error if the server cannot store every text.
func (s *Sink) suited() error {
	if e := s.conn.ParameterStatus("server_encoding"); e != "UTF8" {
		return refusal("the database has the encoding " + e + ", which cannot hold every text; make one with ENCODING 'UTF8'")
	}
	return nil
}

// drop closes a connection and waits at most a second.
func (s *Sink) drop(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the connection is discarded in any case
}

// first is like query, for the first statements of an operation: if the connection had broken while idle, it tries
// again.
func (s *Sink) first(ctx context.Context, sql string) (rows [][][]byte, err error) {
	for range 2 {
		used := s.conn
		if err := s.connect(ctx); err != nil {
			return nil, err
		}
		if rows, err = s.query(ctx, sql); err == nil || s.conn != used || !s.conn.IsClosed() || ctx.Err() != nil {
			break
		}
	}
	return rows, err
}

// query runs statements separated by semicolons and returns the rows of the last one that has any.
func (s *Sink) query(ctx context.Context, sql string) (rows [][][]byte, err error) {
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		if len(r.Rows) > 0 {
			rows = r.Rows
		}
	}
	return rows, nil
}

func (s *Sink) exec(ctx context.Context, sql string) error {
	_, err := s.query(ctx, sql)
	return err
}

// literal returns text as an SQL literal. text has no NUL, and the session sets standard_conforming_strings.
func literal(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// quote returns name as an SQL identifier.
func quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// in returns the qualified name of a relation in the schema.
func (s *Sink) in(name string) string { return quote(s.address.schema) + "." + quote(name) }

func (s *Sink) meta() string { return s.in(destination.MetaTable) }

// A claim is the owner of the schema according to the meta table.
type claim struct {
	Host        string `json:"host"`
	Destination string `json:"destination"`
	Epoch       int64  `json:"epoch"`
}

const (
	ownerRow      = "owner"
	streamsRow    = "streams table" // exists if the table of streams is Sluice's
	holdingPrefix = "stream:"
)

// claim creates the schema and the meta table if they are missing, and claims the schema for o.
func (s *Sink) claim(ctx context.Context, o destination.Owner) error {
	// The lock keeps two first claims from creating them at the same time.
	lock := "SELECT pg_advisory_xact_lock(hashtext(" + literal("sluice:"+s.address.schema) + "))"
	return s.step(ctx, lock, func(ctx context.Context, _ [][][]byte) (end string, err error) {
		if err := s.found(ctx); err != nil {
			return "", err
		}
		rows, err := s.query(ctx, "SELECT value FROM "+s.meta()+" WHERE name = "+literal(ownerRow)+" FOR UPDATE")
		if err != nil {
			return "", err
		}
		var c claim
		if len(rows) > 0 {
			if err := json.Unmarshal(rows[0][0], &c); err != nil {
				return "", foreign(destination.MetaTable)
			}
		}
		if c.Host != "" && (c.Host != o.Host || c.Destination != o.Destination) && !o.TakeOver {
			return "", destination.ErrClaimed
		}
		s.epoch = c.Epoch + 1
		return s.setMeta(ownerRow, claim{o.Host, o.Destination, s.epoch}, s.epoch)
	})
}

// found creates the schema and the meta table if they are missing.
func (s *Sink) found(ctx context.Context) error {
	rows, err := s.query(ctx, "SELECT 1 FROM pg_namespace WHERE nspname = "+literal(s.address.schema))
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		if err := s.exec(ctx, "CREATE SCHEMA "+quote(s.address.schema)); err != nil {
			return s.mayNot(err, "make the schema "+s.address.schema, "CREATE SCHEMA "+quote(s.address.schema)+" AUTHORIZATION "+
				quote(s.address.config.User))
		}
	}
	rows, err = s.query(ctx,
		"SELECT c.relkind, coalesce(string_agg(a.attname || ' ' || format_type(a.atttypid, null), ',' ORDER BY a.attnum), '') FROM pg_class c"+
			" LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE c.relname = "+
			literal(destination.MetaTable)+
			" AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = "+literal(s.address.schema)+
			") GROUP BY c.relkind")
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		err := s.exec(ctx, "CREATE TABLE "+s.meta()+" (name text PRIMARY KEY, value text NOT NULL, number bigint NOT NULL)")
		return s.mayNot(err, "make tables in the schema "+s.address.schema,
			"GRANT USAGE, CREATE ON SCHEMA "+quote(s.address.schema)+" TO "+quote(s.address.config.User))
	case string(rows[0][0]) != "r" || string(rows[0][1]) != "name text,value text,number bigint":
		return foreign(destination.MetaTable)
	}
	return nil
}

// setMeta returns the statement that writes a row of the meta table. number is read at the beginning of each
// transaction: the epoch of the owner or the mark of a stream.
func (s *Sink) setMeta(name string, value any, number int64) (sql string, err error) {
	text, err := json.Marshal(value)
	return fmt.Sprintf(
		"INSERT INTO %s VALUES (%s, %s, %d) ON CONFLICT (name) DO UPDATE SET value = excluded.value, number = excluded.number",
		s.meta(), literal(name), literal(string(text)), number), err
}

// step runs do in a transaction. To save round trips, begin is sent together with the start of the transaction, and the
// statements that do returns together with COMMIT. do gets the last rows of begin.
func (s *Sink) step(ctx context.Context, begin string,
	do func(ctx context.Context, rows [][][]byte) (end string, err error)) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			s.rollback(ctx)
		}
	}()
	rows, err := s.first(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "+begin)
	if err != nil {
		return err
	}
	end, err := do(ctx, rows)
	if err != nil {
		return err
	}
	return s.exec(ctx, end+"; COMMIT")
}

// rollback ends a failed transaction. If that fails, it closes the connection.
func (s *Sink) rollback(ctx context.Context) {
	if s.conn == nil || s.conn.IsClosed() || s.conn.TxStatus() == 'I' || s.exec(ctx, "ROLLBACK") == nil {
		return
	}
	s.drop(s.conn)
}

// errDone ends a step whose batch was already written.
var errDone = errors.New("done before")

// own is like step but fails if another owner has claimed the schema. id is the stream concerned and at its mark, or -1
// if the destination does not have the stream.
func (s *Sink) own(ctx context.Context, id *destination.StreamID,
	do func(ctx context.Context, at int64) (end string, err error)) error {
	names := literal(ownerRow)
	if id != nil {
		names += ", " + literal(nameOf(*id))
	}
	// Lock the fence before reading anything.
	begin := fmt.Sprintf(
		"SELECT number FROM %s WHERE name = %s FOR UPDATE; SELECT name = %[2]s, number FROM %[1]s WHERE name IN (%[3]s); SAVEPOINT begun",
		s.meta(), literal(ownerRow), names)
	err := s.step(ctx, begin, func(ctx context.Context, rows [][][]byte) (end string, err error) {
		epoch, at := int64(-1), int64(-1)
		for _, row := range rows {
			n, err := strconv.ParseInt(string(row[1]), 10, 64)
			if err != nil {
				return "", foreign(destination.MetaTable)
			}
			if string(row[0]) == "t" {
				epoch = n
			} else {
				at = n
			}
		}
		if epoch != s.epoch {
			return "", destination.ErrFenced
		}
		return do(ctx, at)
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return s.told(ctx, err)
}

// Holdings implements destination.Sink.
func (s *Sink) Holdings(ctx context.Context) (map[destination.StreamID]destination.Holding, error) {
	rows, err := s.first(ctx, s.selectHoldings())
	if err != nil {
		return nil, s.told(ctx, err)
	}
	return parseHoldings(rows)
}

func (s *Sink) selectHoldings() string {
	return "SELECT name, value FROM " + s.meta() + " WHERE name LIKE 'stream:%'"
}

// holdings is like Holdings, within a transaction.
func (s *Sink) holdings(ctx context.Context) (map[destination.StreamID]destination.Holding, error) {
	rows, err := s.query(ctx, s.selectHoldings())
	if err != nil {
		return nil, err
	}
	return parseHoldings(rows)
}

func parseHoldings(rows [][][]byte) (map[destination.StreamID]destination.Holding, error) {
	out := map[destination.StreamID]destination.Holding{}
	for _, row := range rows {
		var id destination.StreamID
		var h destination.Holding
		if err := errors.Join(json.Unmarshal(row[0][len(holdingPrefix):], &id), json.Unmarshal(row[1], &h)); err != nil ||
			h.Shape == nil {
			return nil, foreign(destination.MetaTable)
		}
		out[id] = h
	}
	return out, nil
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
	straight := b.From == nil || s.fresh[b.ID] // the rows may be copied into the table itself
	var collided bool
	err := s.own(ctx, &b.ID, func(ctx context.Context, at int64) (end string, err error) {
		if err := s.expected(ctx, b, at); err != nil {
			return "", err
		}
		if err := s.prepare(ctx, b); err != nil {
			return "", err
		}
		end, collided, err = s.write(ctx, b, straight)
		if err != nil {
			return "", err
		}
		mark, err := s.setMeta(nameOf(b.ID), b.To, int64(b.To.Mark)) // #nosec G115 -- versions count changes
		return end + mark, err
	})
	if err != nil {
		delete(s.fresh, b.ID)
		return err
	}
	s.fresh[b.ID] = straight && !collided
	return nil
}

// expected checks that a batch begins at the mark of the destination. It returns errDone if the mark is at the end of
// the batch, because an earlier commit succeeded whose answer was lost.
func (s *Sink) expected(ctx context.Context, b *destination.Batch, at int64) error {
	from := int64(-1)
	if b.From != nil {
		from = int64(b.From.Mark) // #nosec G115 -- versions count changes
	}
	switch {
	case at == from:
		return nil
	case at == int64(b.To.Mark): // #nosec G115
		have, err := s.holdings(ctx)
		if err != nil {
			return err
		}
		if h := have[b.ID]; h.Since.Equal(b.To.Since) && h.Mode == b.To.Mode {
			b.To.Table = h.Table
			return errDone
		}
	}
	return refusal(fmt.Sprintf("the destination is at version %d of %s, and the batch begins behind %d", at, b.ID, from))
}

// Clear implements destination.Sink.
func (s *Sink) Clear(ctx context.Context, id destination.StreamID) error {
	delete(s.fresh, id)
	return s.own(ctx, nil, func(ctx context.Context, _ int64) (end string, err error) {
		have, err := s.holdings(ctx)
		if h, there := have[id]; there {
			end = "DROP TABLE IF EXISTS " + s.in(h.Table) + "; DELETE FROM " + s.meta() + " WHERE name = " + literal(nameOf(id))
		}
		return end, err
	})
}

// Close implements destination.Sink.
func (s *Sink) Close() error {
	if s.conn != nil {
		s.drop(s.conn)
		s.conn = nil
	}
	return nil
}
