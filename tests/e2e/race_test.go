package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// code is an answer to a question for a code.
var code = map[string]any{"answers": map[string]any{"code": "914207"}}

// refused reports whether an error says that an answer or a cancel came too late.
func refused(err error) bool {
	var f *served.Failure
	if !errors.As(err, &f) {
		return false
	}
	switch f.Code {
	case "interrupt_already_resolved", "interrupt_cancelled", "no_pending_interaction", "interrupt_not_found":
		return true
	}
	return false
}

// Two answers, a cancel and a timeout race for a question. At most one answer wins, the
// losers are told so, the timeline agrees, and every run ends with one terminal event,
// its last.
func TestRaces(t *testing.T) {
	const lanes = 4
	rounds := 6
	if campaign.Soak() {
		rounds = 100
	}
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	tcp, err := h.TCP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards seen
	seen := map[string]int{}
	var all sync.WaitGroup
	for lane := range lanes {
		id := store.ConnectionID(fmt.Sprintf("lane%d", lane))
		question := step{"do": "otp", "text": "Code?"}
		if lane%2 == 1 {
			question["timeout"] = 1 // the least there is; some answers come too late
		}
		connect(t, h.Client, id, question, step{"do": "stamp"})
		all.Go(func() {
			for range rounds {
				how := race(t, tcp, string(id), lane%2 == 1)
				mu.Lock()
				seen[how]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%v", seen)
	if campaign.Soak() && (seen["answered"] == 0 || seen["cancelled"] == 0) {
		t.Errorf("the races were none: %v", seen)
	}
}

// race starts one run, and returns what became of the question.
func race(t *testing.T, c *served.Client, workflow string, late bool) string {
	ctx := soon(t)
	id, err := c.Start(ctx, workflow, "")
	// the lease of the last one is about to go
	for ; busyWith(err) && ctx.Err() == nil; id, err = c.Start(ctx, workflow, "") {
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	asked, err := c.Wait(ctx, id, served.Asks)
	if err != nil {
		t.Error(err)
		return ""
	}
	if asked.Interrupt == nil {
		oneEnd(t, c, id)
		return "timed out early"
	}
	var won atomic.Int32
	var all sync.WaitGroup
	delay := func() {
		d := time.Duration(rand.IntN(3000)) * time.Microsecond
		if late {
			d += 995 * time.Millisecond
		}
		<-time.After(d)
	}
	for range 2 {
		all.Go(func() {
			delay()
			err := c.Answer(ctx, asked, code)
			switch {
			case err == nil:
				won.Add(1)
			case !refused(err):
				t.Errorf("an answer: %v", err)
			}
		})
	}
	if rand.IntN(2) == 0 {
		all.Go(func() {
			delay()
			if _, err := c.Cancel(ctx, id); err != nil {
				t.Errorf("cancel: %v", err)
			}
		})
	}
	all.Wait()
	over, err := c.Wait(ctx, id, served.Over)
	if err != nil {
		t.Error(err)
		return ""
	}
	oneEnd(t, c, id)
	answered := len(events(t, c, id, "types=run.assistance_resolved"))
	if n := won.Load(); n > 1 || int(n) != answered {
		t.Errorf("%d answers were accepted, and the timeline has %d (%s)", n, answered, over.Status)
	}
	switch {
	case over.Status == timeline.Failed:
		t.Errorf("run %s failed: %+v", id, over.Error)
	case answered == 1:
		return "answered"
	case over.Status == timeline.Cancelled:
		return "cancelled"
	}
	return "timed out"
}

// Answers that race with the end of the service are either durable or refused. Under the
// next service a run that was not answered still waits, or is over; one that was goes on, and
// each ends once.
func TestRaceWithShutdown(t *testing.T) {
	dir := tempDir(t)
	rounds := 2
	if campaign.Soak() {
		rounds = 20
	}
	const lanes = 4
	h, closeIt := open(t, dir)
	install(t, h.Client, "tests/e2e/guest")
	for i := range lanes {
		connect(t, h.Client, store.ConnectionID(fmt.Sprintf("lane%d", i)), step{"do": "otp", "text": "Code?"},
			step{"do": "stamp", "n": 3, "ms": 2})
	}
	for range rounds {
		accepted := map[store.RunID]bool{}
		var mu sync.Mutex // guards accepted
		var all sync.WaitGroup
		var ids []store.RunID
		for i := range lanes {
			id := start(t, h.Client, fmt.Sprintf("lane%d", i))
			ids = append(ids, id)
			asked, err := h.Wait(soon(t), id, served.Asks)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				all.Go(func() {
					<-time.After(time.Duration(rand.IntN(6000)) * time.Microsecond)
					if h.Answer(t.Context(), asked, code) == nil { // any refusal is one
						mu.Lock()
						defer mu.Unlock()
						if accepted[id] {
							t.Errorf("run %s took two answers", id)
						}
						accepted[id] = true
					}
				})
			}
		}
		<-time.After(time.Duration(rand.IntN(6000)) * time.Microsecond)
		closeIt()
		all.Wait()
		h, closeIt = open(t, dir)
		for _, id := range ids {
			right := served.Asks
			if accepted[id] {
				right = served.Over
			}
			now, err := h.Wait(soon(t), id, right)
			if err == nil && !served.Over(now) {
				if err = h.Answer(t.Context(), now, code); err == nil {
					accepted[id] = true
					_, err = h.Wait(soon(t), id, served.Over)
				}
			}
			if err != nil {
				t.Fatalf("run %s under the next service: %v", id, err)
			}
			oneEnd(t, h.Client, id)
			if n := len(events(t, h.Client, id, "types=run.assistance_resolved")); accepted[id] && n != 1 || n > 1 {
				t.Errorf("run %s: accepted %v, the timeline has %d", id, accepted[id], n)
			}
		}
	}
}
