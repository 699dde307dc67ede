//go:build unix

package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// agings has the server do what the store does of a run, and of a host that says that it lives, in the
// same tables and transactions. Each run is like the newest one that has ended.
const agings = `
create procedure public.age(worker int, first int, runs int, beats int) language plpgsql as $$
declare like_run sluice_store.run; c text; r text; k bigint; f bigint; b bytea; at text := 'aged-' || worker;
begin
  select * into strict like_run from sluice_store.run where ended order by number desc limit 1;
  insert into sluice_store.member (id, epoch, works, expires, seen, joined, about) values (at, at, 1, clock_timestamp() + interval '1 day', now(), now(), '{}')
    on conflict do nothing;
  commit;
  for i in first .. first + runs - 1 loop
    c := at || '-' || i % 500; r := 'run_' || lpad(i || at, 26, '0');
    b := convert_to(replace(convert_from(like_run.body, 'UTF8'), like_run.id, r), 'UTF8');
    insert into sluice_store.attempt values (at, i, now()) on conflict (connection) do update set n = excluded.n, at = excluded.at;
    insert into sluice_store.run (id, connection, week, body) values (r, c, like_run.week, b) returning number into k;
    insert into sluice_store.fence values (c, 1) on conflict (connection) do update set fence = fence.fence + 1 returning fence into f;
    insert into sluice_store.lease (connection, run, number, week, fence, epoch, expires, body) values (c, r, k, like_run.week, f, at, now(), b);
    insert into sluice_store.document values ('schedule', convert_to(c, 'UTF8'), 1, b) on conflict (kind, id) do update set revision = document.revision + 1;
    insert into sluice_store.document values ('command', convert_to(at || '/' || r, 'UTF8'), 1, b, now() + interval '1 minute');
    commit;
    update sluice_store.lease set commits = commits + 1, next = next + 1 where connection = c and run = r and fence = f;
    insert into sluice_store.staged values (r, 's', b);
    insert into sluice_store.question values (r, 'q', b);
    update sluice_store.run set body = b where id = r;
    execute format('insert into sluice_store.timeline_%s values ($1, 0, $2)', like_run.week) using k, b;
    delete from sluice_store.document where kind = 'command' and id = convert_to(at || '/' || r, 'UTF8');
    commit;
    update sluice_store.run set ended = true, next = 1, commits = 1 where id = r;
    delete from sluice_store.lease where run = r;
    delete from sluice_store.question where run = r;
    delete from sluice_store.staged where run = r;
    commit;
    for j in 1 .. (i - first + 1)::bigint * beats / runs - (i - first)::bigint * beats / runs loop
      update sluice_store.member set seen = clock_timestamp(), expires = clock_timestamp() + interval '1 day' where id = at and epoch = at;
      commit;
    end loop;
  end loop;
end $$`

// agers is how many do that at once, and agingRuns how many runs go into a call: only between calls does
// a session tell autovacuum what it did.
const (
	agers     = 2
	agingRuns = 250
)

// Age has a store of one host, in which a run has ended, become older by so many runs and heartbeats,
// of which it has had first before, as fast as the server does it.
func (s *Server) Age(t testing.TB, database string, first, runs, beats int) {
	t.Helper()
	if first == 0 {
		s.Exec(t, database, agings)
	}
	var all sync.WaitGroup
	for w := range agers {
		all.Go(func() {
			script := strings.Builder{}
			script.WriteString("set synchronous_commit = off;\n")
			for n := 0; n < runs/agers; n += agingRuns {
				fmt.Fprintf(&script, "call public.age(%d, %d, %d, %d);\n", w, first/agers+n, min(agingRuns, runs/agers-n),
					beats/agers*agingRuns/(runs/agers))
			}
			if _, err := s.Server.Exec(database, script.String()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// queues are the tables whose rows come and go, or change, all the time.
const queues = `select relname || ' ' || pg_total_relation_size(oid) from pg_class where relnamespace = 'sluice_store'::regnamespace
	and relname in ('lease', 'fence', 'member', 'lead', 'attempt', 'pace', 'staged', 'question', 'journal', 'reading', 'stream', 'document')`

// Queues are the bytes of those tables and their indexes.
func (s *Server) Queues(t testing.TB, database string) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	for line := range strings.Lines(s.Exec(t, database, queues)) {
		name, size, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = n
	}
	return sizes
}

// Claims begins and ends n runs in a store, and returns how long the claims took, the fastest first.
func Claims(t testing.TB, s store.Store, name string, n int) (took []time.Duration) {
	t.Helper()
	for i := range n {
		r := store.Run{ID: store.RunID(fmt.Sprintf("run_z%s%08d", name, i)),
			ConnectionID: store.ConnectionID(fmt.Sprint("claimed-", i%50)), Status: "active", StartedAt: time.Now()}
		began := time.Now()
		l, err := s.Acquire(t.Context(), r, "host", "boot", time.Minute)
		took = append(took, time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := s.Submit(t.Context(), &store.Commit{Lease: l, End: true, Run: &r,
			Events: []store.Event{{ID: store.EventID("evt_" + r.ID), Type: "run.failed", RunID: r.ID,
				Data: json.RawMessage(`{}`)}}})
		if err == nil {
			_, err = receipt.Result()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(took)
	return took
}
