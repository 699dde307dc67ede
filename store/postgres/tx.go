package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// A tx is a writing transaction.
type tx struct {
	*conn
	now time.Time // by the clock of the server
	id  string    // the server's id of the transaction
}

// exec runs a statement and returns the number of affected rows.
func (t *tx) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := t.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// A lock is an advisory lock that a transaction holds until it ends. It causes no writes on the server.
type lock int64

func (s *db) lock(what, id string) lock {
	sum := sha256.Sum256([]byte(s.address.opts.Schema + "\x00" + what + "\x00" + id))
	return lock(binary.BigEndian.Uint64(sum[:])) // #nosec G115 -- any number will do
}

// alone queues taking l exclusively.
func (l lock) alone(b *pgx.Batch) { b.Queue("select pg_advisory_xact_lock($1)", int64(l)) }

// shared queues taking l in shared mode.
func (l lock) shared(b *pgx.Batch) { b.Queue("select pg_advisory_xact_lock_shared($1)", int64(l)) }

// ErrRemoved is returned by all writes of a host that was removed because its lease had expired, or because the host
// was started again.
var ErrRemoved = fmt.Errorf("%w: this host was not heard of for the time of its lease, or was started a second time, "+
	"and others have its runs; start it again", store.ErrStopped)

// write runs fn in a transaction that begins with what lead queues, and repeats that while the server is unavailable.
// When it returns, the transaction is durable or never will be.
func (s *db) write(ctx context.Context, lead func(*pgx.Batch), fn func(context.Context, *tx) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.once(ctx, lead, fn) })
}

// persist repeats do while its error may resolve itself, until OutageWait, or without limit while the disk is full.
func (s *db) persist(ctx context.Context, do func(context.Context) error) error {
	var since time.Time
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if err := s.usable(); err != nil {
			return err
		}
		err := s.told(ctx, do(ctx))
		if err == nil || !passes(err) || ctx.Err() != nil {
			s.outage.Store(nil)
			return err
		}
		if since.IsZero() {
			since = time.Now()
			s.opts.Logger.Warn("database_unavailable", "error", err)
		}
		if s.outage.Store(&err); !errors.Is(err, store.ErrNoSpace) && time.Since(since) > s.opts.OutageWait {
			return fmt.Errorf("gave up after %s: %w", s.opts.OutageWait, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ending:
			return err
		}
	}
}

func (s *db) once(ctx context.Context, lead func(*pgx.Batch), fn func(context.Context, *tx) error) error {
	c, err := s.pool.get(ctx)
	if err != nil {
		return err
	}
	defer s.pool.put(ctx, c)
	t := &tx{conn: c}
	if err = t.begin(ctx, s, lead); err == nil {
		err = fn(ctx, t)
	}
	if err != nil {
		t.rollback()
		return err
	}
	return s.commit(ctx, t)
}

// begin starts the transaction. It returns ErrRemoved if this epoch of the host is no longer a member. Removing a
// member waits for the transactions that hold the lock taken here.
func (t *tx) begin(ctx context.Context, s *db, lead func(*pgx.Batch)) error {
	var member bool
	b := &pgx.Batch{}
	b.Queue("begin")
	s.lock("member", s.opts.Self.ID).shared(b)
	t.begun++
	b.Queue(`insert into attempt (connection, n, at) values ($1, $2, now())
		on conflict (connection) do update set n = excluded.n, at = excluded.at`, t.name, t.begun)
	b.Queue("select exists (select from member where id = $1 and epoch = $2), clock_timestamp(), pg_current_xact_id()::text", s.opts.Self.ID, s.opts.Self.Epoch).
		QueryRow(func(r pgx.Row) error { return r.Scan(&member, &t.now, &t.id) })
	if lead != nil {
		lead(b)
	}
	if err := t.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	t.now = t.now.UTC()
	if !member {
		s.stop(ErrRemoved)
		return ErrRemoved
	}
	return nil
}

func (t *tx) rollback() {
	if t.IsClosed() || t.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = t.PgConn().Exec(ctx, "rollback").ReadAll() // on failure put discards the connection
}

// commitWait bounds the wait for the answer to COMMIT, which may have to wait for a disk or a standby.
const commitWait = 30 * time.Second

// commit ends the transaction. If no answer comes, it asks the server for the outcome.
func (s *db) commit(ctx context.Context, t *tx) error {
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitWait)
	defer cancel()
	results, err := t.PgConn().Exec(waiting, "commit").ReadAll()
	switch {
	case err == nil && len(results) == 1 && results[0].CommandTag.String() == "COMMIT":
		return nil
	case err == nil:
		return errors.New("the database rolled a transaction back")
	case !t.IsClosed():
		return err // the server refused
	}
	return s.resolve(context.WithoutCancel(ctx), t)
}

// errUndone reports that the connection broke before the transaction was durable.
var errUndone = &fault{sentence: "the connection to the database broke before a commit was done", passing: true}

// resolve determines the outcome of a transaction whose COMMIT was not answered: it returns nil if it is durable and
// errUndone if not. The transaction id only tells whether it is still in progress, because after a crash, or on a
// promoted standby, the server may reuse ids that left no trace.
func (s *db) resolve(ctx context.Context, t *tx) error {
	s.opts.Logger.Warn("commit_unanswered", "transaction", t.id)
	pending := &fault{sentence: "a commit whose answer was lost is not decided yet", passing: true}
	var durable bool
	err := s.persist(ctx, func(ctx context.Context) error {
		c, err := s.pool.get(ctx)
		if err != nil {
			return err
		}
		defer s.pool.put(ctx, c)
		var status *string
		err = c.QueryRow(ctx, "select pg_xact_status($1::text::xid8)", t.id).Scan(&status)
		switch {
		case code(err) == "22023": // the id is ahead of this server's
		case err != nil:
			return err
		case status != nil && *status == "in progress":
			return pending
		}
		return c.QueryRow(ctx, "select exists (select from attempt where connection = $1 and n = $2)", t.name,
			t.begun).Scan(&durable)
	})
	if err == nil && !durable {
		err = errUndone
	}
	return err
}

// attemptLife is how long the last attempt of an unused connection is remembered. Whoever lost an answer gives up long
// before.
const attemptLife = 24 * time.Hour

// sweepAttempts deletes older attempts. Attempts in progress stay, because beginning one updates its time.
func sweepAttempts(ctx context.Context, c *conn) error {
	_, err := c.Exec(ctx, "delete from attempt where at < now() - $1::interval", attemptLife)
	return err
}

// readWait is how long a read waits for a server that is unavailable.
const readWait = 5 * time.Second

// read runs fn with a connection, and again if that fails for a reason that may resolve itself.
func (s *db) read(ctx context.Context, fn func(context.Context, *conn) error) error {
	began := time.Now()
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		if s.closed.Load() {
			return store.ErrClosed
		}
		c, err := s.pool.get(ctx)
		if err == nil {
			err = fn(ctx, c)
			s.pool.put(ctx, c)
		}
		err = s.told(ctx, err)
		again := passes(err) && code(err) != tookLong || code(err) == noTable // the table was dropped meanwhile
		if !again || time.Since(began) > readWait {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ending:
			return store.ErrClosed
		}
	}
}

// snapshot runs fn in a read-only transaction, in which all reads see the same commit.
func (s *db) snapshot(ctx context.Context, fn func(context.Context, *conn) error) error {
	return s.read(ctx, func(ctx context.Context, c *conn) error {
		if _, err := c.Exec(ctx, "begin isolation level repeatable read read only"); err != nil {
			return err
		}
		err := fn(ctx, c)
		(&tx{conn: c}).rollback()
		return err
	})
}
