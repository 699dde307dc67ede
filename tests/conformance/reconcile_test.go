package conformance

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/run"
)

// A run whose host is dead is closed, once, with what its timeline says; a run with a
// living host is not.
func TestReconcile(t *testing.T) {
	for _, c := range []struct {
		name        string
		host, epoch string
		ttl         time.Duration
		closed      bool
	}{
		{"this boot", "host_test", "boot_test", time.Nanosecond, false},
		{"an earlier boot", "host_test", "boot_2", time.Hour, true},
		{"another host that lives", "host_2", "boot_2", time.Hour, false},
		{"another host's that expired", "host_2", "boot_2", time.Nanosecond, true},
		{"the only host", "", "boot_2", time.Hour, true},
		{"the only host, this boot", "", "boot_test", time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := faultStage(t)
			owner := newDesk()
			d := g.drive(t, func(_ *run.Input, deps *run.Deps) {
				deps.Owner, deps.LeaseTTL, deps.LeaseRenew = owner, c.ttl, time.Hour
			}).started()
			d.guest.does(aRecord)
			d.heard("credit 1")
			d.guest.does(question)
			<-owner.asked
			for range 2 {
				if err := run.Reconcile(t.Context(), g.host.Store, c.host, c.epoch, nil); err != nil {
					t.Fatal(err)
				}
			}
			p := &played{events: g.events(t, d.run.ID)}
			want := "run.batch_ingested | interrupt.requested approval.requested run.interaction_required run.assistance_requested node.suspended"
			if c.closed {
				want += " | lease.lost lease.acquired node.failed run.failed"
			}
			if got := after(p); got != want {
				t.Fatalf("events\n%s, want\n%s", got, want)
			}
			pending, err := g.host.Store.Pending(t.Context(), d.run.ID)
			if err != nil || (len(pending) == 0) != c.closed {
				t.Errorf("pending %v, %v", pending, err)
			}
			if last := p.events[len(p.events)-1]; c.closed && (member(t, last, "open_interaction_id") != `"q1"` ||
				member(t, last, "records_flushed") != "1" || member(t, last, "counts_source") != `"reconstructed"`) {
				t.Errorf("end %s", last.Data)
			}
		})
	}
}
