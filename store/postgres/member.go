package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

var _ store.Members = (*Store)(nil)

// generation is the version of the protocol between hosts. Hosts one generation apart can share a database, so that
// they can be upgraded one by one. A new generation or migration must therefore be compatible with the one before.
const generation = 1

// hold takes the lock of this host's id, which lasts as long as the connection.
func (s *members) hold(ctx context.Context, c *pgx.Conn) error {
	var held bool
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if err := c.QueryRow(ctx, "select pg_try_advisory_lock($1)",
			int64(s.lock("host", s.opts.Self.ID))).Scan(&held); err != nil || held {
			return err
		}
		if time.Since(began) > time.Second { // a host that just ended may hold it that long
			return s.busy(ctx, c)
		}
	}
}

// busy returns an error that names the process running as this host.
func (s *members) busy(ctx context.Context, c *pgx.Conn) error {
	e := &inUse{store.BusyError{Dir: s.address.shown, Host: "another process"}}
	m, err := scanMember(c.QueryRow(ctx, membersSQL+" where m.id = $1", s.opts.Self.ID))
	if err != nil {
		return e
	}
	e.Host = fmt.Sprintf("process %d on %s since %s", m.PID, m.Name, store.Time(m.JoinedAt))
	if m.Name == s.opts.Self.Name {
		e.PID = m.PID
	}
	return e
}

// join makes this host a member. When it returns, all transactions of its earlier start are over.
func (s *members) join(ctx context.Context, c *pgx.Conn) error {
	about, err := json.Marshal(s.opts.Self.About)
	if err != nil {
		return err
	}
	sent := time.Now()
	b := &pgx.Batch{}
	b.Queue("begin")
	s.lock("member", s.opts.Self.ID).alone(b)
	var oldest, newest int
	b.Queue("select coalesce(min(works), $1::int), coalesce(max(works), $1::int) from member where id <> $2 and expires > clock_timestamp()", s.opts.Generation, s.opts.Self.ID).
		QueryRow(func(r pgx.Row) error { return r.Scan(&oldest, &newest) })
	b.Queue(`insert into member (id, epoch, works, expires, seen, joined, about)
		values ($1, $2, $3, clock_timestamp() + $4, statement_timestamp(), statement_timestamp(), $5)
		on conflict (id) do update set epoch = excluded.epoch, works = excluded.works, expires = excluded.expires, seen = excluded.seen, joined = excluded.joined,
			about = excluded.about, draining = false returning clock_timestamp()`, s.opts.Self.ID, s.opts.Self.Epoch, s.opts.Generation, s.opts.Lease, about).
		QueryRow(s.setClock)
	b.Queue("delete from lost where id = $1 or seen < clock_timestamp() - $2::interval", s.opts.Self.ID, lostFor)
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	end := "commit"
	var unfit error
	if s.opts.Generation-oldest > 1 || newest-s.opts.Generation > 1 {
		end, unfit = "rollback",
			errors.New("its hosts are of versions too far from this one's; upgrade hosts one version at a time, first those that run")
	}
	_, err = c.PgConn().Exec(ctx, end).ReadAll()
	s.lived.Store(&sent)
	return errors.Join(unfit, err)
}

// Alive implements store.Members. It checks the monotonic clock, because the wall clock may be set back, and the wall
// clock, because the monotonic clock may stop while the machine sleeps.
func (s *db) Alive() error {
	heard, now := *s.lived.Load(), time.Now()
	if now.Sub(heard) < s.opts.Lease && now.Round(0).Sub(heard.Round(0)) < s.opts.Lease {
		return s.usable()
	}
	return store.ErrSilent
}

// setClock sets the offset of the server's clock from the time in r.
func (s *db) setClock(r pgx.Row) error {
	var now time.Time
	err := r.Scan(&now)
	if err == nil {
		s.offset.Store(int64(time.Until(now)))
	}
	return err
}

// Now implements store.Members.
func (s *db) Now() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) }

// here converts a time of the server's clock to this machine's clock, so that it can be compared with time.Now. Offsets
// below about 5 s are ignored.
func (s *db) here(at time.Time) time.Time {
	return at.Add(-time.Duration(s.offset.Load()).Round(10 * time.Second)).UTC()
}

// leave ends the membership and notifies the other hosts.
func (s *members) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.keeper.conn == nil || s.keeper.conn.IsClosed() {
		return // others notice when the lease expires
	}
	_, err := s.keeper.conn.Exec(ctx, "delete from member where id = $1 and epoch = $2", s.opts.Self.ID, s.opts.Self.Epoch)
	if err == nil {
		_, err = s.keeper.conn.Exec(ctx, "select pg_notify($1, $2)", s.channel(), tellMembers)
	}
	if err != nil {
		s.opts.Logger.Warn("membership_not_ended", "error", s.told(ctx, err))
	}
}

// Self implements store.Members.
func (s *members) Self() store.Member { return s.opts.Self }

// Removed implements store.Members.
func (s *members) Removed() <-chan struct{} { return s.removed }

// Err implements store.Members.
func (s *members) Err() error { return s.usable() }

// Announce implements store.Members.
func (s *members) Announce(ctx context.Context, a store.About) error {
	a.Name, a.PID = s.opts.Self.Name, s.opts.Self.PID
	about, err := json.Marshal(a)
	if err != nil {
		return err
	}
	err = s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "update member set about = $2 where id = $1", s.opts.Self.ID, about)
		return err
	})
	s.tell(tellMembers)
	return err
}

// lostFor is how long a lost host is remembered.
const lostFor = 30 * 24 * time.Hour

// Lost implements store.Members.
func (s *members) Lost(ctx context.Context) (all []store.Member, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx,
			"select id, epoch, false, joined, seen, about, runs from lost where seen > clock_timestamp() - $1::interval order by id", lostFor)
		if err == nil {
			all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (store.Member, error) { return scanMember(r) })
		}
		return err
	})
	return all, err
}

const membersSQL = `select m.id, m.epoch, m.draining, m.joined, m.seen, m.about, (select count(*) from lease l where l.epoch = m.epoch) from member m`

func scanMember(r pgx.Row) (m store.Member, err error) {
	var about []byte
	if err = r.Scan(&m.ID, &m.Epoch, &m.Draining, &m.JoinedAt, &m.SeenAt, &about, &m.Runs); err == nil {
		err = decode(about, &m.About)
	}
	m.JoinedAt, m.SeenAt = m.JoinedAt.UTC(), m.SeenAt.UTC()
	return m, err
}

// Members implements store.Members.
func (s *members) Members(ctx context.Context) (all []store.Member, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, membersSQL+" order by m.id")
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (store.Member, error) { return scanMember(r) })
		return err
	})
	return all, err
}

// Drain implements store.Members.
func (s *members) Drain(ctx context.Context, id string, on bool) error {
	err := s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, "update member set draining = $2 where id = $1", id, on)
		if err == nil && n == 0 {
			err = missing(nil, "host %s", id)
		}
		return err
	})
	if err == nil {
		s.kinds.WakeAll()
		s.tell(tellMembers)
	}
	return err
}

// Lead implements store.Members.
func (s *members) Lead(ctx context.Context) (leads bool, err error) {
	var taken bool
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		return c.QueryRow(ctx, "select epoch = $1, epoch in (select epoch from member) from lead",
			s.opts.Self.Epoch).Scan(&leads, &taken)
	})
	if err != nil || taken {
		return leads && s.usable() == nil, err
	}
	err = s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, "update lead set epoch = $1 where epoch not in (select epoch from member)", s.opts.Self.Epoch)
		leads = n == 1
		return err
	})
	return leads && err == nil, err
}

// Leader implements store.Members.
func (s *members) Leader(ctx context.Context) (epoch string, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		return c.QueryRow(ctx, "select case when epoch in (select epoch from member) then epoch else '' end from lead").Scan(&epoch)
	})
	return epoch, err
}

// Yield implements store.Members.
func (s *members) Yield(ctx context.Context) error {
	err := s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "update lead set epoch = '' where epoch = $1", s.opts.Self.Epoch)
		return err
	})
	s.tell(tellMembers)
	return err
}
