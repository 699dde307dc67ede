package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// busy are connections whose runs are at different stages when the host dies.
var busy = []struct {
	id    store.ConnectionID
	steps []step
}{
	{"parked", []step{{"do": "emit", "n": 10}, {"do": "otp", "text": "Code?"}}},
	{"emitting", []step{{"do": "emit", "n": 40_000, "text": "a record"}, {"do": "emit", "n": 40_000}}},
	{"talking", []step{{"do": "stamp", "n": 5000, "ms": 1}}},
	{"brief", []step{{"do": "emit", "n": 1}}},
}

// every is how often the scheduled connection is due, in seconds.
const every = 1

// Kill -9 at any moment leaves nothing stuck. Runs that were active end with
// controller_restarted, questions are closed, connections are free, schedules start
// each due time once, and a start that is repeated with its idempotency key is one run.
func TestKilled(t *testing.T) {
	dir := tempDir(t)
	c := serve(t, dir)
	install(t, c.Client, "tests/e2e/guest")
	for _, b := range busy {
		connect(t, c.Client, b.id, b.steps...)
	}
	connect(t, c.Client, "keyed", step{"do": "stamp", "n": 20})
	connect(t, c.Client, "scheduled", step{"do": "emit", "n": 1})
	zero := int64(0)
	seconds := int64(every)
	if _, err := c.Do(t.Context(), "PUT", "/v1/connections/scheduled/schedule",
		host.ScheduleDefinition{IntervalSeconds: &seconds, MaxRetries: &zero}, nil); err != nil {
		t.Fatal(err)
	}
	rounds := 2
	if campaign.Soak() {
		rounds = 20
	}
	keys, cut := map[string]map[store.RunID]bool{}, 0
	for round := range rounds {
		key := fmt.Sprintf("key-%d-%d", round, time.Now().UnixNano())
		keys[key] = map[store.RunID]bool{}
		crash(t, c, key, keys[key])
		c = serve(t, dir)
		cut = healed(t, c.Client)
		id, err := c.Start(t.Context(), "keyed", key)
		if err != nil {
			t.Fatalf("the start was sent again: %v", err)
		}
		keys[key][id] = true
		if _, err := c.Wait(soon(t), id, served.Over); err != nil {
			t.Fatal(err)
		}
	}
	for key, runs := range keys {
		if len(runs) != 1 {
			t.Errorf("key %s made the runs %v", key, runs)
		}
	}
	if n := count(t, c.Client, "/v1/runs?connectionId=keyed"); n != len(keys) {
		t.Errorf("%d keys made %d runs", len(keys), n)
	}
	if cut < rounds {
		t.Errorf("%d runs were active in %d crashes", cut, rounds)
	}
	ticks(t, c.Client)
}

// crash starts runs of all connections, and kills the host at some moment.
func crash(t *testing.T, c *child, key string, got map[store.RunID]bool) {
	t.Helper()
	var work sync.WaitGroup
	var killed atomic.Bool
	said := func(err error) {
		var url *url.Error
		if err != nil && !killed.Load() && !busyWith(err) && !errors.As(err, &url) {
			t.Errorf("before the end: %v", err)
		}
	}
	for _, b := range busy {
		work.Go(func() {
			_, err := c.Start(t.Context(), string(b.id), "")
			said(err)
		})
	}
	var mu sync.Mutex // guards got
	for range 2 {
		work.Go(func() {
			id, err := c.Start(t.Context(), "keyed", key)
			if said(err); err == nil {
				mu.Lock()
				got[id] = true
				mu.Unlock()
			}
		})
	}
	<-time.After(time.Duration(rand.IntN(1500)) * time.Millisecond)
	killed.Store(true)
	c.kill()
	work.Wait()
}

// busyWith reports whether a start was refused because a run is active.
func busyWith(err error) bool {
	var f *served.Failure
	return errors.As(err, &f) && (f.Code == "run_already_active" || f.Code == "idempotency_in_flight" || f.Status == 409)
}

// healed checks that a crash left only runs that are over, or wait for an answer as before.
func healed(t *testing.T, c *served.Client) (cut int) {
	t.Helper()
	waiting := 0
	var page struct{ Data []timeline.Snapshot }
	if _, err := c.Do(t.Context(), "GET", "/v1/runs?limit=200", nil, &page); err != nil {
		t.Fatal(err)
	}
	for _, s := range page.Data {
		if s.Sluice.TriggerKind != "manual" { // a schedule may have begun the next one
			continue
		}
		if s.Sluice.ConnectionID == "parked" && s.Status == timeline.WaitingInput {
			waiting++
			continue
		}
		if !s.Status.Terminal() {
			t.Errorf("run %s of %s is %s", s.RunID, s.Sluice.ConnectionID, s.Status)
		}
		if s.Status == timeline.Failed && s.Error.Code != "controller_restarted" {
			t.Errorf("run %s of %s failed with %+v", s.RunID, s.Sluice.ConnectionID, s.Error)
		}
		if oneEnd(t, c, s.RunID) == timeline.RunFailed {
			cut++
		}
	}
	if n := count(t, c, "/v1/assistance?connectionId=parked"); n != waiting || n > 1 {
		t.Errorf("%d questions are open, %d runs wait", n, waiting)
	}
	return cut
}

// oneEnd checks that a run has exactly one terminal event, and that it is the
// last.
func oneEnd(t *testing.T, c *served.Client, id store.RunID) timeline.Type {
	t.Helper()
	ends := events(t, c, id, "types=run.completed,run.failed,run.cancelled")
	if len(ends) != 1 {
		t.Errorf("run %s ended so: %+v", id, ends)
		return ""
	}
	if after := events(t, c, id, fmt.Sprintf("after=%d", ends[0].Sequence)); len(after) > 0 {
		t.Errorf("run %s goes on behind its end: %+v", id, after)
	}
	return ends[0].Type
}

type event struct {
	Type     timeline.Type
	Sequence uint64
}

func events(t *testing.T, c *served.Client, id store.RunID, query string) []event {
	t.Helper()
	var page struct{ Events []event }
	if _, err := c.Do(t.Context(), "GET", "/v1/runs/"+string(id)+"/events?"+query, nil, &page, "Accept",
		"application/json"); err != nil {
		t.Fatal(err)
	}
	return page.Events
}

// ticks checks the history of the scheduled connection: no due time occurs twice, and
// none is missing while the host was up.
func ticks(t *testing.T, c *served.Client) {
	t.Helper()
	var page struct{ Data []host.Tick }
	if _, err := c.Do(t.Context(), "GET", "/v1/connections/scheduled/schedule/history?limit=200", nil, &page); err != nil {
		t.Fatal(err)
	}
	runs := map[string]bool{}
	for _, k := range page.Data {
		if k.RunID == "" {
			continue
		}
		if runs[k.RunID] {
			t.Errorf("run %s is in the history twice", k.RunID)
		}
		runs[k.RunID] = true
	}
	if len(runs) == 0 {
		t.Error("the schedule started nothing")
	}
	var all struct{ Data []timeline.Snapshot }
	if _, err := c.Do(t.Context(), "GET", "/v1/runs?limit=200&connectionId=scheduled", nil, &all); err != nil {
		t.Fatal(err)
	}
	began := map[string]store.RunID{}
	for _, s := range all.Data {
		if s.Status.Terminal() && !runs[string(s.RunID)] {
			t.Errorf("run %s (%s, %s) is in no history", s.RunID, s.Status, s.StartedAt)
		}
		if second := s.StartedAt[:len("2006-01-02T15:04:05")]; began[second] != "" && s.Sluice.Attempt == 1 {
			t.Logf("runs %s and %s began in the second %s", began[second], s.RunID, second)
		} else {
			began[second] = s.RunID
		}
	}
}

func count(t *testing.T, c *served.Client, path string) int {
	t.Helper()
	var page struct{ Data []any }
	if _, err := c.Do(t.Context(), "GET", path, nil, &page); err != nil {
		t.Fatal(err)
	}
	return len(page.Data)
}
