package webhook_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// A dated store has a clock of its own, by which it dates runs and events.
type dated struct {
	*memory
	ahead time.Duration
}

func (d *dated) Now() time.Time { return time.Now().Add(d.ahead) }

// begin starts a run by the clock of the store.
func (d *dated) begin() store.RunID {
	id := d.memory.begin()
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runs[id]
	r.StartedAt = d.Now()
	d.runs[id] = r
	return id
}

// say appends events of these types by the clock of the store.
func (d *dated) say(id store.RunID, types ...string) {
	d.mu.Lock()
	n := len(d.events[id])
	d.mu.Unlock()
	d.memory.say(id, types...)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.events[id][n:] {
		d.events[id][n+i].RecordedAt = d.Now()
	}
}

// The clock of a host may be before or behind that of the store: no event of a run is lost, also of one that starts and
// ends between two scans, none of before the webhook is delivered, and a delivery is tried again, and signed, at the
// store's time.
func TestClockOfTheStore(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"before": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, r := &dated{newMemory(), ahead}, &receiver{}
				old := m.begin()
				m.say(old, "run.started")
				time.Sleep(time.Minute)
				o := options(m.memory, r)
				o.Store = m
				h := open(t, o)
				defer closed(t, h)
				w := create(t, h, webhook.Definition{Events: []string{"run.*"}})
				if at, err := time.Parse(time.RFC3339, w.CreatedAt); err != nil || m.Now().Sub(at) > time.Minute {
					t.Errorf("it was made at %s, %v, which is %s", w.CreatedAt, err, m.Now())
				}
				m.say(old, "run.completed")
				settle()
				check(t, "of a run that was there", r.got(t), []string{string(old) + " run.completed"})
				for range 3 {
					time.Sleep(3 * time.Minute)
					quick := m.begin()
					m.say(quick, "run.started", "run.completed")
					settle()
					check(t, "of a short run", r.got(t), []string{string(quick) + " run.started", string(quick) + " run.completed"})
				}
				status := http.StatusInternalServerError
				r.answers(func(s webhook.Sent) int {
					if d := s.At.Sub(m.Now()).Abs(); d > time.Minute {
						t.Errorf("signed as of %s, which is %s", s.At, m.Now())
					}
					return status
				})
				m.say(m.begin(), "run.started")
				settle()
				check(t, "attempts", len(r.got(t)), 1)
				status = http.StatusOK
				time.Sleep(webhook.Delays[0] + webhook.Delays[0]/10)
				synctest.Wait()
				check(t, "attempts after the first delay", len(r.got(t)), 1)
			})
		})
	}
}
