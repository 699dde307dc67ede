//go:build unix

package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/postgres"
)

// named are the points at which a host is killed: by what they are called, the transaction around whose
// COMMIT that is, and what has a host come there where it does not by itself.
var named = map[string]struct {
	says  []string
	first func(f *faults)
}{
	"a claim":                          {says: []string{"insert into lease"}},
	"records":                          {says: []string{"insert into timeline_", "run.batch_ingested"}},
	"the end of a run":                 {says: []string{"delete from lease"}},
	"a due time moved on, and its run": {says: []string{"insert into lease", argument(store.Schedules)}},
	"a question":                       {says: []string{"insert into question"}},
	"an answer on its way":             {says: []string{"insert into document", argument(store.Commands)}},
	"an answer taken out":              {says: []string{"delete from document", argument(store.Commands)}},
	"a question closed":                {says: []string{"delete from question where run = $1 and id"}},
	"the removal of a host":            {says: []string{"delete from member"}, first: (*faults).killRunning},
	"a takeover":                       {says: []string{"update lease set fence"}, first: (*faults).killWaiting},
	"the end of a run of a lost host": {says: []string{"insert into timeline_", "controller_restarted"},
		first: (*faults).killRunning},
	"a run handed over by a drain":      {says: []string{"update lease set fence"}, first: (*faults).drainWaiting},
	"a webhook claimed":                 {says: []string{"update lead set epoch"}, first: (*faults).killLeading},
	"a webhook delivered, and its mark": {says: []string{"insert into document", argument(store.Deliveries)}},
	"a batch sent, and its mark":        {says: []string{"insert into document", argument(store.Delivered)}},
}

// argument is a kind of documents as an argument of a statement.
func argument(k store.Kind) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(k)))) + string(k)
}

// points are the faults of all named points.
func points() map[string]fault {
	all := map[string]fault{}
	for name, at := range named {
		for _, cut := range []postgres.Cut{postgres.Before, postgres.After} {
			all[fmt.Sprintf("killed %s %s", cut, name)] = func(f *faults, _ string) {
				if at.first != nil {
					at.first(f)
				}
				f.killAt(cut, at.says...)
			}
		}
	}
	for _, cut := range []postgres.Cut{postgres.Before, postgres.After} {
		all[fmt.Sprintf("killed %s rows in a destination", cut)] = func(f *faults, _ string) {
			h := f.rows.Hold(cut, "INSERT INTO")
			defer h.Drop()
			f.killOnce("rows are written", h.Reached, func() string { return f.feeds("rows") })
		}
	}
	all["killed between a webhook sent and its answer"] = func(f *faults, _ string) {
		reached, pass := f.told.hold()
		defer pass()
		f.killOnce("the end of a run is told", reached, f.leads)
	}
	all["killed between a batch sent and its answer"] = func(f *faults, _ string) {
		reached, pass := f.batches.hold()
		defer pass()
		f.killOnce("a batch is sent", reached, func() string { return f.feeds("batches") })
	}
	return all
}

// killOnce kills a host once something is reached.
func (f *faults) killOnce(what string, reached <-chan struct{}, whom func() string) {
	f.t.Helper()
	select {
	case <-reached:
	case <-soon(f.t).Done():
		f.t.Fatalf("not within a minute: %s", what)
	}
	f.kill(whom(), func() {})
}

// killAt kills the first host that comes to a point.
func (f *faults) killAt(cut postgres.Cut, says ...string) {
	f.t.Helper()
	reached, all := make(chan string, len(f.proxies)), map[string]*postgres.Held{}
	for name, p := range f.proxies {
		h := p.Hold(cut, says...)
		all[name] = h
		go func() {
			select {
			case <-h.Reached:
				reached <- name
			case <-f.t.Context().Done():
			}
		}()
	}
	select {
	case victim := <-reached:
		for name, h := range all {
			if name != victim {
				f.proxies[name].Forget(h)
			}
		}
		f.kill(victim, all[victim].Drop)
	case <-soon(f.t).Done():
		f.t.Fatalf("no host comes to %q within a minute", says)
	}
}

// kill kills a host, which is missed, or started again before.
func (f *faults) kill(name string, then func()) {
	f.hosts[name].kill()
	if then(); f.IntN(2) == 0 {
		f.gone(name)
	}
}

// who is the host of which a statement tells the id, once there is one.
func (f *faults) who(what, sql string) (name string) {
	f.t.Helper()
	until(f.t, what, func() bool {
		id := f.server.Exec(f.t, f.name(), sql)
		for n, m := range f.hosts {
			if m.id == id {
				name = n
			}
		}
		return name != ""
	})
	return name
}

func (f *faults) leads() string {
	return f.who("a host leads", "select m.id from sluice_store.lead join sluice_store.member m using (epoch)")
}

// has is the host that has a run of a connection.
func (f *faults) has(connection string) string {
	return f.who("a host has a run of "+connection, fmt.Sprintf(`select m.id from sluice_store.lease join sluice_store.member m using (epoch)
		where connection like '%s' limit 1`, connection))
}

func (f *faults) feeds(destination string) string {
	return f.who("a host feeds "+destination, fmt.Sprintf(`select m.id from sluice_store.document join sluice_store.member m on epoch = convert_from(data, 'UTF8')::json->>'epoch'
		where kind = '%s' and document.id = '%s'`, store.Destinations, destination))
}

func (f *faults) killRunning() { f.hosts[f.has("pages%")].kill() }

func (f *faults) killLeading() { f.hosts[f.leads()].kill() }

// waiting begins a run that waits for its owner, who answers once all hosts are there again: it goes on,
// whichever has it then.
func (f *faults) waiting() *collector {
	c := f.collector("waits")
	id := c.begin()
	c.at(func(ctx context.Context, h *served.Client) error {
		s, err := h.Snapshot(ctx, id)
		if err == nil && s.Interrupt == nil {
			err = errTurn
		}
		return err
	})
	f.mended = func() {
		c.answer(id)
		if end := f.hosts[f.names[0]].whole(id); end != timeline.RunCompleted {
			f.Lost(1, "run %s waited, its host was lost or drained, it was answered and ended with %s", id, end)
		}
	}
	return c
}

func (f *faults) killWaiting() {
	f.waiting()
	f.hosts[f.has("waits")].kill()
}

func (f *faults) drainWaiting() {
	c := f.waiting()
	at := "/v1/hosts/" + f.hosts[f.has("waits")].id + "/drain"
	c.at(func(ctx context.Context, h *served.Client) error {
		_, err := h.Do(ctx, "POST", at, map[string]any{}, nil)
		return err
	})
	answered := f.mended
	f.mended = func() {
		answered()
		c.at(func(ctx context.Context, h *served.Client) error {
			_, err := h.Do(ctx, "DELETE", at, nil, nil)
			return err
		})
	}
}

// answer has a run's question answered, at whichever host, until the run is over.
func (c *collector) answer(id store.RunID) {
	c.at(func(ctx context.Context, h *served.Client) error {
		s, err := h.Snapshot(ctx, id)
		if err != nil || s.Status.Terminal() {
			return err
		}
		if s.Interrupt != nil {
			err = h.Answer(ctx, s, map[string]any{"answers": map[string]string{"code": "123456"}})
		}
		return errors.Join(errTurn, err)
	})
}

// checkAsked checks that each run asked once at most, and that those that went on were answered.
func (c *collector) checkAsked(m *member) {
	for _, id := range c.order {
		count := map[timeline.Type]int{}
		for _, e := range m.events(id) {
			count[e.Type]++
		}
		end := m.whole(id)
		if asked, closed := count[timeline.InterruptRequested], count[timeline.InterruptResolved]; asked > 1 ||
			closed > asked || end == timeline.RunCompleted && closed != 1 {
			c.f.Torn("run %s ended with %s, asked %d times and was answered %d times", id, end, asked, closed)
		}
		c.f.Checked(1)
	}
}

// checkTold checks that the end of every run was told by the webhook, and no other end.
func (f *faults) checkTold() {
	ended := strings.Fields(f.server.Exec(f.t, f.name(), "select id from sluice_store.run where ended"))
	until(f.t, "the webhook has told of the end of every run", func() bool {
		return !slices.ContainsFunc(ended, func(id string) bool { return f.told.count(id) == 0 })
	})
	for _, id := range ended {
		if n := f.told.count(id); n != 1 {
			f.Torn("the webhook told of %d ends of run %s", n, id)
		}
	}
	f.Checked(len(ended))
}

// checkFed checks that the destinations have what is stored of a connection, each key once.
func (f *faults) checkFed(c *collector) {
	stored := func(and string) string {
		return f.server.Exec(f.t, f.name(), fmt.Sprintf(`select sum(live) from sluice_store.stream join sluice_store.heap on heap.number = heap
			where connection = '%s' %s`, c.id, and))
	}
	table := fmt.Sprintf("sluice.%q", destination.StreamID{Connection: c.id, Stream: "items"}.Table())
	all, items := stored(""), stored("and name = 'items'")
	until(f.t, "the destinations have all of "+string(c.id), func() bool {
		return fmt.Sprint(f.batches.count(string(c.id))) == all &&
			f.server.Exec(f.t, f.out, "select count(*) from "+table) == items
	})
	if f.server.Exec(f.t, f.out, "select count(*) = count(distinct _key) from "+table) != "t" {
		f.Torn("a key of %s is in the destination twice", c.id)
	}
	f.Checked(2)
}

// TestFlakyPoints is TestFlakyHosts with hosts killed at named points.
func TestFlakyPoints(t *testing.T) { strikes(t, "several hosts, killed at named points", points(), 3) }
