//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/bench/item"
	"github.com/sluicehost/sluice/tests/postgres"
)

// bareTables is the layout of the store's tables, as far as a flush touches them.
const bareTables = `
create table records (
  stream bigint not null, version bigint not null, emitted bigint not null, ingested bigint not null, run bigint not null, sum bigint not null,
  flags smallint not null, key bytea not null, data bytea not null,
  primary key (stream, key)
);
create unique index on records (stream, version);
create index on records (stream, emitted, key);
create table timeline (run bigint, seq bigint, body bytea not null, primary key (run, seq));
create table stream (number bigint primary key, last bigint not null);
create table lease (run bigint primary key, commits bigint not null);
insert into stream values (1, 0);
insert into lease values (1, 0)`

// bareFlush writes records as a program would that has just these tables.
const bareFlush = `
with input as (
  select * from unnest($1::bytea[], $2::bytea[], $3::int8[]) with ordinality as i (key, data, emitted, at)
), counted as (
  update stream set last = last + (select count(*) from input) where number = 1 returning last - (select count(*) from input) as base
)
insert into records select 1, base + at, emitted, $4, 1, 0, 0, key, data from input, counted
on conflict (stream, key) do update set version = excluded.version, emitted = excluded.emitted, ingested = excluded.ingested, data = excluded.data
where records.data <> excluded.data`

// bare ingests the n records that the guests ingest, 500 in a transaction with an
// event, counters and the check of a lease.
func bare(b *testing.B, url string, n int) time.Duration {
	b.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.PgConn().Exec(ctx, bareTables).ReadAll(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for from := 0; from < n; from += 500 {
		var keys, data [][]byte
		var emitted []int64
		page := make([]item.Item, min(500, n-from))
		item.Fill(page, from)
		for i := range page {
			record, err := json.Marshal(&page[i])
			if err != nil {
				b.Fatal(err)
			}
			keys, data, emitted = append(keys, []byte(page[i].ID)), append(data, record), append(emitted, int64(from+i))
		}
		batch := &pgx.Batch{}
		batch.Queue("begin")
		batch.Queue("update lease set commits = commits + 1 where run = 1 returning commits")
		batch.Queue(bareFlush, keys, data, emitted, time.Now().UnixMicro())
		batch.Queue("insert into timeline values (1, $1, $2)", from/500,
			fmt.Appendf(nil, `{"event_type":"run.batch_ingested","records":%d}`, len(keys)))
		batch.Queue("commit")
		if err := c.SendBatch(ctx, batch).Close(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// bareOf has several such programs write n records at once, each to tables of its own.
func bareOf(b *testing.B, server *postgres.Server, programs, n int) time.Duration {
	b.Helper()
	var all sync.WaitGroup
	began := time.Now()
	for range programs {
		url := server.Database(b)
		all.Go(func() { bare(b, url, n/programs) })
	}
	all.Wait()
	return time.Since(began)
}

// hostsOf has one host a run ingest n records, all of them into one database.
func hostsOf(b *testing.B, server *postgres.Server, runs, n int) (took time.Duration) {
	b.Helper()
	url, hosts, modules := server.Database(b), make([]*app.Host, runs), make([]*app.Loaded, runs)
	for i := range hosts {
		h, err := app.Open(context.Background(),
			app.Options{Store: url + "&data=" + b.TempDir(), CacheDir: os.Getenv("SLUICE_CACHE")})
		if err != nil {
			b.Fatal(err)
		}
		hosts[i], modules[i] = h, loaded(b, h, "frames")
	}
	var all sync.WaitGroup
	began := time.Now()
	for i, h := range hosts {
		r, err := h.Start(context.Background(),
			app.RunRequest{Connector: modules[i], Connection: store.ConnectionID(fmt.Sprint("c", i)),
				Config: configOf("", n/runs, 0)})
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() { finish(b, r, int64(n/runs)) })
	}
	all.Wait()
	took = time.Since(began)
	for _, h := range hosts {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	}
	return took
}

// BenchmarkPostgres ingests from a guest into PostgreSQL, beside a program that writes the same
// layout without Sluice, and beside Badger. The server syncs and runs on the same cores. They take
// turns; medians of three turns are reported. Goals: at least 0.8 of the bare layout, and at most
// 1.3 of the host's CPU time a record with Badger; for four hosts with a run each at least 0.9 of
// four bare programs at once.
func BenchmarkPostgres(b *testing.B) {
	n := min(records(), 300_000)
	server := postgres.Start(b)
	into := func(store string) (recordsPerSecond, cpu float64) {
		dir := b.TempDir()
		if store == "" {
			store = "badger:" + dir
		} else {
			store += "&data=" + dir
		}
		h, err := app.Open(context.Background(), app.Options{Store: store, CacheDir: os.Getenv("SLUICE_CACHE")})
		if err != nil {
			b.Fatal(err)
		}
		l := loaded(b, h, "frames")
		before := cpuTime(b)
		took, _ := ingest(b, h, l, "", n, 0)
		cpu = perRecord(n, cpuTime(b)-before)
		if err := errors.Join(h.Close(), os.RemoveAll(dir)); err != nil {
			b.Error(err)
		}
		return rate(n, took), cpu
	}
	for b.Loop() {
		seen := map[string][]float64{}
		for range 3 {
			url := server.Database(b)
			seen["bare-rec/s"] = append(seen["bare-rec/s"], rate(n, bare(b, url, n)))
			for name, store := range map[string]string{"postgres": server.Database(b), "badger": ""} {
				r, cpu := into(store)
				seen[name+"-rec/s"] = append(seen[name+"-rec/s"], r)
				seen[name+"-host-cpu-us/rec"] = append(seen[name+"-host-cpu-us/rec"], cpu)
			}
		}
		for range 3 {
			seen["bare-of-4-rec/s"] = append(seen["bare-of-4-rec/s"], rate(n, bareOf(b, server, 4, n)))
			seen["hosts-of-4-rec/s"] = append(seen["hosts-of-4-rec/s"], rate(n, hostsOf(b, server, 4, n)))
		}
		for name, figures := range seen {
			b.ReportMetric(median(figures), name)
		}
		b.ReportMetric(median(seen["postgres-rec/s"])/median(seen["bare-rec/s"]), "postgres/bare")
		b.ReportMetric(median(seen["hosts-of-4-rec/s"])/median(seen["bare-of-4-rec/s"]), "hosts-of-4/bare")
		b.ReportMetric(median(seen["postgres-host-cpu-us/rec"])/median(seen["badger-host-cpu-us/rec"]), "cpu-postgres/badger")
	}
}
