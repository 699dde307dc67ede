//go:build unix

package cluster

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// A host is killed, and another one stopped for longer than its lease, while each has a run: the
// third ends their runs, and its streams, opened before, show all of it. The host that was stopped
// stores nothing when it goes on, and ends with a reason.
func TestTakeover(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b", "c")
	a, b, d := c.hosts["a"], c.hosts["b"], c.hosts["c"]
	if n := len(a.list()); n != 3 {
		t.Fatalf("%d hosts", n)
	}
	a.install()
	long := []step{{"do": "emit", "n": 10}, {"do": "stamp", "n": 100_000, "ms": 20}}
	a.connect("mine", long...)
	a.connect("yours", long...)
	mine, yours := a.begin("mine"), b.begin("yours") // b has the module from the store
	streams := map[store.RunID]*served.Frames{}
	for _, id := range []store.RunID{mine, yours} {
		s, err := d.Stream(t.Context(), id, "?streamMode=debug", "")
		if err != nil {
			t.Fatal(err)
		}
		streams[id] = s
	}
	if _, err := d.Start(soon(t), "mine", ""); err == nil {
		t.Error("a connection has two runs")
	}
	running := func(s timeline.Snapshot) bool { return s.Status == "running" || s.Status.Terminal() }
	a.wait(mine, running)
	d.wait(yours, running)
	b.signal(syscall.SIGSTOP)
	a.kill()
	for id, s := range streams {
		var last served.Frame
		next := uint64(0)
		for {
			f, err := s.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.ID != next {
				t.Fatalf("event %d of %s where %d belongs", f.ID, id, next)
			}
			next, last = f.ID+1, f
		}
		if last.Event != "run.failed" {
			t.Errorf("run %s ended with %s: %s", id, last.Event, last.Data)
		}
	}
	for _, id := range []store.RunID{mine, yours} {
		s := d.wait(id, served.Over)
		if s.Error == nil || s.Error.Code != "controller_restarted" {
			t.Errorf("run %s: %+v", id, s.Error)
		}
		if end := d.whole(id); end != timeline.RunFailed {
			t.Errorf("run %s ended with %s", id, end)
		}
	}
	until(t, "the one that is left leads", func() bool { all := d.list(); return len(all) == 1 && all[0].Leads })
	again := d.begin("yours") // it is free
	before := len(d.events(yours))
	b.signal(syscall.SIGCONT)
	if <-b.over; b.err == nil {
		t.Error("a host that others have removed ended as if nothing were")
	}
	if after := len(d.events(yours)); after != before {
		t.Errorf("%d events came behind the end of a run", after-before)
	}
	if _, err := d.Cancel(soon(t), again); err != nil {
		t.Fatal(err)
	}
	d.wait(again, served.Over)
	c.open("a")
	c.open("b")
	until(t, "both are members again", func() bool { return len(d.list()) == 3 })
}

// A schedule starts each due time once, on one of the hosts, and goes on when the host that has
// its run is killed: the tick is tried again elsewhere.
func TestSchedules(t *testing.T) {
	t.Parallel()
	c := start(t, postgres.Shared(t), "a", "b", "c")
	a := c.hosts["a"]
	a.install()
	second := int64(1)
	names := []string{"s0", "s1", "s2", "s3"}
	for _, name := range names {
		a.connect(store.ConnectionID(name), step{"do": "emit", "n": 1})
		a.do("PUT", "/v1/connections/"+name+"/schedule", host.ScheduleDefinition{IntervalSeconds: &second}, nil)
	}
	runs := func(m *member) (all []timeline.Snapshot) {
		for _, name := range names {
			var page struct{ Data []timeline.Snapshot }
			m.do("GET", "/v1/runs?limit=200&connectionId="+name, nil, &page)
			all = append(all, page.Data...)
		}
		return all
	}
	until(t, "runs have started", func() bool { return len(runs(a)) >= 12 })
	c.hosts["b"].kill()
	n := len(runs(a))
	until(t, "runs start without the host that was killed", func() bool { return len(runs(a)) >= n+12 })
	for _, name := range names {
		a.do("DELETE", "/v1/connections/"+name+"/schedule", nil, nil)
	}
	for _, r := range runs(a) {
		a.wait(r.RunID, served.Over)
		a.whole(r.RunID)
	}
	for _, name := range names {
		var page struct{ Data []host.Tick }
		a.do("GET", "/v1/connections/"+name+"/schedule/history?limit=200", nil, &page)
		seen := map[string]bool{}
		for _, k := range page.Data {
			if k.RunID != "" && seen[k.RunID] {
				t.Errorf("run %s is in the history of %s twice", k.RunID, name)
			}
			seen[k.RunID] = true
		}
	}
}

// Schedules that are all due in the same second start once each, on more than one of the hosts.
func TestManyDue(t *testing.T) {
	t.Parallel()
	const schedules = 24
	c := start(t, postgres.Shared(t), "a", "b", "c")
	c.server.Exec(t, c.name(), postgres.History)
	a := c.hosts["a"]
	a.install()
	for i := range schedules {
		a.connect(store.ConnectionID(fmt.Sprint("d", i)), step{"do": "emit", "n": 1})
	}
	for i := range schedules {
		due := time.Now().UTC().Add(2 * time.Minute) // of almost all the same minute, at least one away
		a.do("PUT", fmt.Sprintf("/v1/connections/d%d/schedule", i),
			host.ScheduleDefinition{Cron: due.Format("4 15 2 1 *"), Timezone: "UTC"}, nil)
	}
	ended := func() string {
		return c.server.Exec(t, c.name(),
			"select count(distinct connection) || ' of ' || count(*) from sluice_store.run where ended")
	}
	for late := time.After(10 * time.Minute); ended() != fmt.Sprintf("%d of %[1]d", schedules); {
		select {
		case <-time.After(time.Second):
		case <-late:
			t.Fatalf("the runs of %s connections are over", ended())
		}
	}
	if by := c.server.Exec(t, c.name(), "select count(distinct writer) > 1 from history where op = 'INSERT'"); by != "t" {
		t.Error("one host started all of them")
	}
	if wrong := c.server.Exec(t, c.name(), postgres.Violations); wrong != "" {
		t.Errorf("history: %s", wrong)
	}
	for i := range schedules {
		var page struct{ Data []host.Tick }
		until(t, "a tick is recorded", func() bool {
			a.do("GET", fmt.Sprintf("/v1/connections/d%d/schedule/history", i), nil, &page)
			return len(page.Data) > 0
		})
		if len(page.Data) != 1 || page.Data[0].Status != "succeeded" {
			t.Errorf("d%d has the ticks %+v", i, page.Data)
		}
	}
}
