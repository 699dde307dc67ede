//go:build unix

package bench

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// benchLease is how long a host may be silent.
const benchLease = 5 * time.Second

// sharing opens a host on a database, behind a proxy.
func sharing(b *testing.B, server *postgres.Server, database string) (*served.Host, *postgres.Proxy) {
	b.Helper()
	dir, err := served.TempDir()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	p := server.Proxy(b)
	return serviceOn(b, dir, fmt.Sprintf("%s&data=%s&lease=%s", p.Through(b, database), dir, benchLease)), p
}

// BenchmarkHosts has two hosts share a PostgreSQL that syncs and runs on the same cores. It measures how
// long a message of a guest at one takes from there to a client of the other (goals: p50 10 ms, p99 50 ms), what
// 1,000 clients of the other need (goal: 100 MB), how long a host with 50 runs takes to end (goal: 10 s),
// and how long behind its lease the run of a host that is cut off is ended by the other (goal: 2 s).
func BenchmarkHosts(b *testing.B) {
	for b.Loop() {
		server := postgres.Start(b)
		database := server.Database(b)
		a, proxy := sharing(b, server, database)
		o, _ := sharing(b, server, database)
		b.Cleanup(func() { o.Close() })
		installSteps(b, a)
		tcp, err := o.TCP(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		connect(b, a, "talks", step{"do": "wait", "ms": 2000}, step{"do": "stamp", "n": 200, "ms": 50})
		all := stamped(b, tcp, startRun(b, a, "talks"))
		if len(all) < 200 {
			b.Fatalf("%d stamps came", len(all))
		}
		percentiles(b, "event-elsewhere", all)

		connect(b, a, "one", step{"do": "wait", "ms": 3_600_000})
		id := startRun(b, a, "one")
		running := func(s timeline.Snapshot) bool { return s.Status == timeline.Running || s.Status.Terminal() }
		waitFor(b, o, id, running)
		before := resident(b)
		_, leave := gather(b, o, tcp.Key, id, 1000)
		b.ReportMetric(resident(b)-before, "1000-readers-MiB")
		leave()

		thaw := proxy.Freeze()
		cut := time.Now()
		if s := waitFor(b, o, id, served.Over); s.Status != timeline.Failed {
			b.Fatalf("the run of a host that is cut off is %s", s.Status)
		}
		b.ReportMetric((time.Since(cut) - benchLease).Seconds(), "takeover-behind-lease-s")
		thaw()
		a.Close() // says that it was removed

		d, _ := sharing(b, server, database)
		ids := make([]store.RunID, 50)
		for i := range ids {
			name := fmt.Sprint("busy", i)
			connect(b, d, name, step{"do": "wait", "ms": 3_600_000})
			ids[i] = startRun(b, d, name)
		}
		for _, id := range ids {
			waitFor(b, o, id, running)
		}
		ending := time.Now()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(ending).Seconds(), "end-of-50-runs-s")
		for _, id := range ids {
			waitFor(b, o, id, served.Over)
		}
	}
}

// BenchmarkDue has a thousand schedules due in one second, over three hosts. It measures how long after it the
// last run starts beside the time that as many runs take anyway, which a sample started by hand
// tells (goal: 5 s).
func BenchmarkDue(b *testing.B) {
	const schedules, sample = 1000, 150
	for b.Loop() {
		server := postgres.Start(b)
		database := server.Database(b)
		var hosts []*served.Host
		for range 3 {
			h, _ := sharing(b, server, database)
			b.Cleanup(func() { h.Close() })
			hosts = append(hosts, h)
		}
		installSteps(b, hosts[0])
		for i := range schedules {
			connect(b, hosts[i%3], fmt.Sprint("d", i), step{"do": "emit", "n": 1})
		}
		began := time.Now()
		ids := make([]store.RunID, sample)
		for i := range ids {
			ids[i] = startRun(b, hosts[i%3], fmt.Sprint("d", i))
		}
		for i, id := range ids {
			waitFor(b, hosts[i%3], id, served.Over)
		}
		work := time.Since(began) * schedules / sample

		due := time.Now().UTC().Add(6 * time.Minute).Truncate(time.Minute)
		for i := range schedules {
			terms := host.ScheduleDefinition{Cron: due.Format("4 15 2 1 *"), Timezone: "UTC"}
			if _, err := hosts[i%3].Do(b.Context(), "PUT", fmt.Sprintf("/v1/connections/d%d/schedule", i),
				terms, nil); err != nil {
				b.Fatal(err)
			}
		}
		if time.Now().After(due) {
			b.Fatal("this machine is too slow to set the schedules before they are due")
		}
		name := path.Base(strings.SplitN(database, "?", 2)[0])
		const started = `select count(distinct connection) || ' ' || count(*) || ' ' || coalesce(extract(epoch from max((r->>'started_at')::timestamptz)), 0)
			from (select connection, convert_from(body, 'UTF8')::json r from sluice_store.run) x where r->>'trigger_kind' = 'scheduled'`
		var connections, runs int
		var last float64
		for connections < schedules {
			time.Sleep(time.Second)
			if _, err := fmt.Sscan(server.Exec(b, name, started), &connections, &runs, &last); err != nil {
				b.Fatal(err)
			}
			if time.Since(due) > 20*time.Minute {
				b.Fatalf("%d of %d schedules started", connections, schedules)
			}
		}
		if runs != schedules {
			b.Fatalf("%d schedules started %d runs", schedules, runs)
		}
		b.ReportMetric(work.Seconds(), "work-of-1000-s")
		b.ReportMetric(last-float64(due.Unix()), "last-of-1000-started-s")
		b.ReportMetric(last-float64(due.Unix())-work.Seconds(), "last-started-behind-work-s")
	}
}
