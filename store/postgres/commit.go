package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// A group is a sequence of commits of one run that share a transaction.
type group struct {
	s     *Store
	items []*item
	lease store.Lease

	next, commits int64 // of the run before the group
	number, week  int64
	permit        []byte // the connection's grant as JSON
	removes       bool   // contents may have been erased
	known
	lane *lane
}

// commitAll applies commits of one lane in one transaction.
func (s *Store) commitAll(l *lane, items []*item) error {
	g := &group{s: s, items: items, lease: items[0].commit.Lease, lane: l}
	l.resume(g.lease)
	err := s.write(context.Background(), g.fence, g.apply)
	if err != nil {
		l.forget()
		return err
	}
	l.commits, l.known = g.commits+int64(len(items)), g.known
	l.ended = l.ended || items[len(items)-1].commit.End
	if g.removes {
		s.contents.changed()
	}
	if g.events() > 0 {
		s.Wake(map[store.RunID]bool{g.lease.RunID: true})
		s.tell(tellRun + string(g.lease.RunID))
	}
	return nil
}

func (g *group) events() (n int) {
	for _, it := range g.items {
		n += len(it.commit.Events)
	}
	return n
}

// fence queues the beginning of every commit: it advances the lease, provided that it is the current one.
func (g *group) fence(b *pgx.Batch) {
	g.number, g.permit, g.removes = 0, nil, false
	g.s.lock("connection", string(g.lease.ConnectionID)).shared(b)
	b.Queue(`update lease set commits = commits + $4, next = next + $5 where connection = $1 and run = $2 and fence = $3
		returning next - $5, commits - $4, number, week`,
		string(g.lease.ConnectionID), string(g.lease.RunID), g.lease.Fence, len(g.items),
		g.events()).QueryRow(func(r pgx.Row) error {
		return absent(r.Scan(&g.next, &g.commits, &g.number, &g.week))
	})
	b.Queue("select permit from connection where id = $1", string(g.lease.ConnectionID)).QueryRow(func(r pgx.Row) error {
		return absent(r.Scan(&g.permit))
	})
}

// absent returns err, or nil if err says that there is no row.
func absent(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// apply does everything after fence.
func (g *group) apply(ctx context.Context, t *tx) error {
	if g.number == 0 {
		return g.refused(ctx, t)
	}
	if g.lane.commits >= 0 && g.lane.commits != g.commits {
		return &store.SinkError{Code: "engine_rolled_back", Err: ErrRolledBack}
	}
	g.known = known{g.lane.heap, maps.Clone(g.lane.streams), g.lane.loose}
	next := g.next
	for _, it := range g.items {
		if err := g.one(ctx, t, it, next); err != nil {
			return err
		}
		next += int64(len(it.commit.Events))
	}
	if err := g.putEvents(ctx, t); err != nil {
		return err
	}
	if last := g.items[len(g.items)-1].commit; last.End {
		return g.end(ctx, t, next)
	}
	return nil
}

// refused returns the reason why the lease did not advance: the run is unknown, ended or fenced.
func (g *group) refused(ctx context.Context, t *tx) error {
	var ended bool
	err := t.QueryRow(ctx, "select ended from run where id = $1", string(g.lease.RunID)).Scan(&ended)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return missing(nil, "run %s", g.lease.RunID)
	case err != nil:
		return err
	case ended:
		return store.ErrRunTerminal
	}
	return store.ErrFenced
}

// one applies one commit, except for its events and its end.
func (g *group) one(ctx context.Context, t *tx, it *item, next int64) error {
	cm := it.commit
	if err := g.admit(t, cm); err != nil {
		return err
	}
	h := g.holding(t, cm)
	it.ack = store.Ack{FirstSequence: uint64(next), RecordedAt: t.now} // #nosec G115 -- it counts up from 0
	for _, b := range cm.Batches {
		changed, err := g.ingest(ctx, t, b, h)
		if err != nil {
			return err
		}
		it.ack.Changed += changed
		it.ack.Unchanged += b.Len() - changed
	}
	if err := h.settle(ctx); err != nil {
		return err
	}
	b := &pgx.Batch{}
	if err := g.queueState(b, cm); err != nil {
		return err
	}
	if err := g.queueRun(b, cm); err != nil {
		return err
	}
	if b.Len() > 0 {
		if err := t.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	if cm.ConsumeGrant {
		return g.consume(ctx, t, cm)
	}
	return nil
}

// admit checks whether the grant permits a commit whose lease is the current one.
func (g *group) admit(t *tx, cm *store.Commit) error {
	var grant *store.Grant
	if g.permit != nil {
		if err := decode(g.permit, &grant); err != nil {
			return err
		}
	}
	return cm.Permits(grant, t.now, g.s.opts.FailState)
}

// queueState stages cursors, advances those of the connection and stores gaps.
func (g *group) queueState(b *pgx.Batch, cm *store.Commit) error {
	for _, st := range cm.Staged {
		body, err := json.Marshal(st)
		if err != nil {
			return err
		}
		b.Queue("insert into staged (run, stream, body) values ($1, $2, $3) on conflict (run, stream) do update set body = excluded.body",
			string(g.lease.RunID), string(st.Stream), body)
	}
	for _, st := range cm.Advance {
		body, err := json.Marshal(st)
		if err != nil {
			return &store.StateError{Stream: st.Stream, Err: err}
		}
		b.Queue(`insert into state (connection, permit, stream, body) values ($1, $2, $3, $4)
			on conflict (connection, permit, stream) do update set body = excluded.body`,
			string(g.lease.ConnectionID), string(cm.Grant), string(st.Stream), body)
	}
	for _, gap := range cm.Gaps {
		body, err := json.Marshal(store.KeptGap{DetailGap: gap, Ref: gap.Ref})
		if err != nil {
			return err
		}
		b.Queue(`insert into gap (connection, permit, id, body) values ($1, $2, $3, $4)
			on conflict (connection, permit, id) do update set body = excluded.body`,
			string(g.lease.ConnectionID), string(cm.Grant), []byte(gap.Identity()), body)
	}
	return nil
}

// queueRun deletes the question that was answered, stores the one that is asked and the journal, and replaces the run
// record.
func (g *group) queueRun(b *pgx.Batch, cm *store.Commit) error {
	run := string(g.lease.RunID)
	if cm.Answered != "" {
		b.Queue("delete from question where run = $1 and id = $2", run, cm.Answered)
	}
	if cm.Ask != nil {
		q, err := g.s.questions.Seal(*cm.Ask)
		if err != nil {
			return err
		}
		body, err := json.Marshal(q)
		if err != nil {
			return err
		}
		b.Queue("insert into question (run, id, body) values ($1, $2, $3) on conflict (run, id) do update set body = excluded.body", run, cm.Ask.ID, body)
	}
	for _, p := range cm.Journal {
		b.Queue("insert into journal (run, n, body) values ($1, $2, $3) on conflict (run, n) do update set body = excluded.body", run, int64(p.N), p.Data) // #nosec G115 -- it counts up from 0
	}
	if cm.Run != nil {
		body, err := json.Marshal(cm.Run)
		if err != nil {
			return err
		}
		b.Queue("update run set body = $2 where id = $1", run, body)
	}
	return nil
}

// consume marks the connection's grant as used, unless another grant has replaced it.
func (g *group) consume(ctx context.Context, t *tx, cm *store.Commit) error {
	id := string(g.lease.ConnectionID)
	c, err := oneBody[store.Connection](t.QueryRow(ctx, "select body from connection where id = $1 for update", id),
		"connection", id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil || !cm.Consume(&c, t.now) {
		return err
	}
	return t.putConnection(ctx, c)
}

// putEvents appends the events of all commits to the timeline.
func (g *group) putEvents(ctx context.Context, t *tx) error {
	var all [][]byte
	for _, it := range g.items {
		for i := range it.commit.Events {
			text, err := it.commit.EncodeEvent(i, uint64(g.next)+uint64(len(all)), t.now) // #nosec G115 -- it counts up from 0
			if err != nil {
				return err
			}
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err := t.exec(ctx, fmt.Sprintf(
		"insert into timeline_%d (run, seq, body) select $1, $2 + at - 1, body from unnest($3::bytea[]) with ordinality as e (body, at)", g.week),
		g.number, g.next, all)
	return err
}

// end releases the lease and deletes everything pending of the run.
func (g *group) end(ctx context.Context, t *tx, next int64) error {
	b, run := &pgx.Batch{}, string(g.lease.RunID)
	b.Queue("update run set ended = true, next = $2, commits = $3 where id = $1", run, next, g.commits+int64(len(g.items)))
	b.Queue("delete from lease where run = $1", run)
	b.Queue("delete from question where run = $1", run)
	b.Queue("delete from staged where run = $1", run)
	b.Queue("delete from journal where run = $1", run)
	g.erase(b, nil)
	return t.SendBatch(ctx, b).Close()
}
