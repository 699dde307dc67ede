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

// A tx is a transaction that writes.
type tx struct {
	*conn
	now time.Time // by the clock of the server
	id  string    // of the transaction, as the server counts them
}

// exec runs a statement and returns how many rows it touched.
func (t *tx) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := t.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// A lock is what transactions hold until they end so that others wait. It costs the
// server no write.
type lock int64

func (s *db) lock(what, id string) lock {
	sum := sha256.Sum256([]byte(s.address.opts.Schema + "\x00" + what + "\x00" + id))
	return lock(binary.BigEndian.Uint64(sum[:])) // #nosec G115 -- any number will do
}

// alone queues taking l, which one transaction can have.
func (l lock) alone(b *pgx.Batch) { b.Queue("select pg_advisory_xact_lock($1)", int64(l)) }

// shared queues taking l with others that share it.
func (l lock) shared(b *pgx.Batch) { b.Queue("select pg_advisory_xact_lock_shared($1)", int64(l)) }

// ErrRemoved is why a host that was not heard of for the time of its lease stores nothing any more.
var ErrRemoved = errors.New("this host was not heard of for the time of its lease, or was started a second time; others have ended its runs, and it writes nothing any more: start it again")

// write runs fn in a transaction that lead begins, again while the server is not there. It
// returns once the transaction is durable, or is not and will not be.
func (s *db) write(ctx context.Context, lead func(*pgx.Batch), fn func(context.Context, *tx) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.once(ctx, lead, fn) })
}

// persist does something again while what keeps it from being done may be over by itself.
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

// begin starts the transaction, unless this start of the host is no member any more: whoever
// removes it waits for those that hold the lock here.
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
	_, _ = t.PgConn().Exec(ctx, "rollback").ReadAll() // a connection that stays in it is thrown away
}

// commitWait is how long an answer to COMMIT is waited for; it waits for a disk or a standby.
const commitWait = 30 * time.Second

// commit ends the transaction. Where no answer comes it asks the server what became of it.
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
		return err // the server said no
	}
	return s.resolve(context.WithoutCancel(ctx), t)
}

// errUndone: the connection died before the transaction was durable.
var errUndone = &fault{sentence: "the connection to the database broke before a commit was done", passing: true}

// resolve asks what became of a transaction whose COMMIT got no answer: nil is durable, errUndone
// not. Its number says whether it is still under way, and no more: a server that crashes, and a
// standby that takes over, gives numbers again that left no trace.
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
		case code(err) == "22023": // of a server that has not come that far
		case err != nil:
			return err
		case status != nil && *status == "in progress":
			return pending
		}
		return c.QueryRow(ctx, "select exists (select from attempt where connection = $1 and n = $2)", t.name, t.begun).Scan(&durable)
	})
	if err == nil && !durable {
		err = errUndone
	}
	return err
}

// attemptLife is for how long a connection is remembered that begins no more transactions. Who lost an
// answer has given up long before.
const attemptLife = 24 * time.Hour

// sweepAttempts removes the others. One whose transaction is under way is left: that moves the time on.
func sweepAttempts(ctx context.Context, c *conn) error {
	_, err := c.Exec(ctx, "delete from attempt where at < now() - $1::interval", attemptLife)
	return err
}

// readWait is how long a read waits for a server that is not there.
const readWait = 5 * time.Second

// read runs fn with a connection, again where that breaks.
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
		again := passes(err) && code(err) != tookLong || code(err) == noTable // it was dropped meanwhile
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

// snapshot runs fn where all that it reads is as of one commit.
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
