package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// heapSQL creates a table of records. Columns of fixed length come first. The key is bytea, so that records sort by
// bytes.
const heapSQL = `
create table records_%[1]d (
  stream bigint not null, version bigint not null, emitted bigint not null, ingested bigint not null, run bigint not null, sum bigint not null,
  flags smallint not null, key bytea not null, data bytea not null,
  primary key (stream, key)
);
create unique index on records_%[1]d (stream, version);
create index on records_%[1]d (stream, emitted, key)`

// findHeap finds or creates the table for the connection's records.
func (g *group) findHeap(ctx context.Context, t *tx) (err error) {
	if g.heap != 0 {
		return nil
	}
	g.streams = make(map[store.Stream]stream)
	g.heap, err = t.findHeap(ctx, string(g.lease.ConnectionID))
	return err
}

// findHeap returns the number of the table of a connection's records, which it creates if necessary.
func (t *tx) findHeap(ctx context.Context, id string) (heap int64, err error) {
	err = t.QueryRow(ctx, "select number from heap where connection = $1 and not erased", id).Scan(&heap)
	if !errors.Is(err, pgx.ErrNoRows) {
		return heap, err
	}
	if err := t.QueryRow(ctx, "insert into heap (connection) values ($1) returning number", id).Scan(&heap); err != nil {
		return 0, err
	}
	_, err = t.PgConn().Exec(ctx, fmt.Sprintf(heapSQL, heap)).ReadAll()
	return heap, err
}

// A stream is what a lane knows about a stream.
type stream struct {
	number int64
	holds  bool // its records may hold files
}

// findStream finds or creates a stream. Once a stream has held files, it is marked for good.
func (g *group) findStream(ctx context.Context, t *tx, name store.Stream, holds bool) (st stream, err error) {
	if st = g.streams[name]; st.number != 0 && (st.holds || !holds) {
		return st, nil
	}
	err = t.QueryRow(ctx, "select number, holds from stream where heap = $1 and name = $2", g.heap,
		string(name)).Scan(&st.number, &st.holds)
	if errors.Is(err, pgx.ErrNoRows) {
		err = t.QueryRow(ctx, "insert into stream (heap, name) values ($1, $2) returning number", g.heap,
			string(name)).Scan(&st.number)
	}
	if err == nil && holds && !st.holds {
		st.holds = true
		_, err = t.exec(ctx, "update stream set holds = true where number = $1", st.number)
	}
	g.streams[name] = st
	return st, err
}

// tidyEvery is how often tidy retries what could not be deleted at once.
const tidyEvery = time.Minute

// tidy drops the tables and contents of erased data, including what earlier hosts left, until the store closes.
func (s *files) tidy() {
	again := time.NewTicker(tidyEvery)
	defer again.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.drop(ctx)
	s.remove(ctx)
	for {
		select {
		case <-s.ending:
			return
		case <-again.C:
		case <-s.views.left:
		case <-s.contents.wake:
		}
		s.drop(ctx)
		s.remove(ctx)
	}
}

// drop drops the tables of erased data unless a view may be reading them, because DROP TABLE does not respect
// snapshots.
func (s *db) drop(ctx context.Context) {
	for s.views.none() {
		dropped := false
		err := s.write(ctx, nil, func(ctx context.Context, t *tx) error {
			dropped = false
			var heap int64
			var free bool // no host has a view open
			err := t.QueryRow(ctx, "select pg_try_advisory_xact_lock($1)", int64(s.lock("views", ""))).Scan(&free)
			if err != nil || !free {
				return err
			}
			err = t.QueryRow(ctx, "select number from heap where erased order by number limit 1 for update skip locked").Scan(&heap)
			if err != nil {
				return absent(err)
			}
			if _, err = t.exec(ctx, fmt.Sprintf("drop table if exists records_%d", heap)); err == nil {
				_, err = t.exec(ctx, "delete from stream where heap = $1", heap)
			}
			for _, sql := range []string{"delete from held where heap = $1", "delete from file where heap = $1",
				"update content set erased = true where heap = $1"} {
				if err == nil {
					_, err = t.exec(ctx, sql, heap)
				}
			}
			if err == nil {
				_, err = t.exec(ctx, "delete from heap where number = $1", heap)
			}
			dropped = true
			return err
		})
		if err != nil {
			s.opts.Logger.Warn("records_not_dropped", "error", err) // drop will be called again
		}
		if err != nil || !dropped {
			return
		}
	}
}
