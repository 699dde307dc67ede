package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// A keeper maintains the membership of this host, on a connection of its own that also holds the lock of the host's id.
type keeper struct {
	conn  *pgx.Conn
	since time.Time // first heartbeat since the last failure
}

func (k *keeper) release() {
	if k.conn != nil {
		end(k.conn)
	}
}

// beats is the number of heartbeats per lease. They are at most a second apart.
const beats = 6

func (s *members) keep() {
	beat := time.NewTicker(min(s.opts.Lease/beats, time.Second))
	defer beat.Stop()
	heard := time.Now() // last answer of the server
	s.keeper.since = heard
	for {
		select {
		case <-s.ending:
			return
		case <-s.removed:
			return
		case <-beat.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), max(s.opts.Lease/2, time.Second))
		if err := s.beat(ctx); err != nil {
			s.keeper.since = time.Time{}
			s.opts.Logger.Warn("heartbeat_failed", "error", s.told(ctx, err))
			if time.Since(heard) > s.opts.Lease {
				s.pool.cut() // their answers may never arrive
			}
		} else {
			heard = time.Now()
		}
		cancel()
	}
}

// beat sends a heartbeat of this host and removes other hosts whose leases have expired.
func (s *members) beat(ctx context.Context) error {
	if err := s.reconnect(ctx); err != nil {
		return err
	}
	sent := time.Now()
	err := s.setClock(s.keeper.conn.QueryRow(ctx, `update member set seen = clock_timestamp(), expires = clock_timestamp() + $3 where id = $1 and epoch = $2
		returning clock_timestamp()`, s.opts.Self.ID, s.opts.Self.Epoch, s.opts.Lease))
	if errors.Is(err, pgx.ErrNoRows) {
		s.stop(ErrRemoved)
		return nil
	}
	if err != nil {
		return err
	}
	s.lived.Store(&sent)
	if s.keeper.since.IsZero() {
		s.keeper.since = time.Now()
	}
	return s.removeDead(ctx)
}

// reconnect replaces the keeper's connection if it broke.
func (s *members) reconnect(ctx context.Context) error {
	if c := s.keeper.conn; !c.IsClosed() {
		return nil
	}
	c, err := pgx.ConnectConfig(ctx, s.address.config.Copy())
	if err != nil {
		return err
	}
	s.keeper.conn = c
	var busy *inUse
	if err = s.hold(ctx, c); errors.As(err, &busy) { // the epoch decides who may write
		s.opts.Logger.Warn("host_lock_lost", "error", err)
		return nil
	}
	return err
}

// removeDead removes the members whose leases have expired. After an outage, which may have affected all hosts, it
// first gives the others the duration of a lease to return.
func (s *members) removeDead(ctx context.Context) error {
	rows, err := s.keeper.conn.Query(ctx, "select id, epoch, expires < clock_timestamp() from member")
	if err != nil {
		return err
	}
	type member struct {
		ID, Epoch string
		Dead      bool
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[member])
	if err != nil {
		return err
	}
	s.news.others.Store(len(all) > 1)
	for _, m := range all {
		if !m.Dead || time.Since(s.keeper.since) < s.opts.Lease {
			continue
		}
		if err := s.removeMember(ctx, m.ID, m.Epoch); err != nil {
			return err
		}
	}
	return nil
}

// removeMember removes a member whose lease has expired. Once it returns, no transaction of that epoch can commit:
// those in progress were terminated or waited for.
func (s *members) removeMember(ctx context.Context, id, epoch string) error {
	b := &pgx.Batch{}
	b.Queue(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and datname = current_database() and usename = current_user
		and exists (select from member where epoch = $2 and expires < clock_timestamp())`, application(epoch), epoch)
	b.Queue("begin")
	s.lock("member", id).alone(b)
	removed := int64(0)
	b.Queue(`with gone as (delete from member where id = $1 and epoch = $2 and expires < clock_timestamp() returning *)
		insert into lost (id, epoch, joined, seen, runs, about) select id, epoch, joined, seen, (select count(*) from lease l where l.epoch = gone.epoch), about from gone
		on conflict (id) do update set epoch = excluded.epoch, joined = excluded.joined, seen = excluded.seen, runs = excluded.runs, about = excluded.about
		returning 1`, id, epoch).
		QueryRow(func(r pgx.Row) error { return absent(r.Scan(&removed)) })
	b.Queue("commit")
	err := s.keeper.conn.SendBatch(ctx, b).Close()
	if err != nil {
		end(s.keeper.conn) // it may still be in a transaction
		return err
	}
	if removed == 1 {
		s.opts.Logger.Warn("host_removed", "host", id, "epoch", epoch, "next",
			"its runs are ended here; look at why it was not heard of")
		s.kinds.WakeAll()
		s.tell(tellMembers)
	}
	return nil
}
