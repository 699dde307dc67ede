package conformance

import (
	"testing"

	"github.com/sluicehost/sluice/host/run"
)

// A run of another boot is closed, once, with what its timeline says; a run of this one is not.
func TestReconcile(t *testing.T) {
	for _, c := range []struct {
		name        string
		host, epoch string
		closed      bool
	}{
		{"this boot", "host_test", "boot_test", false},
		{"an earlier boot", "host_test", "boot_2", true},
		{"a host without an id yet", "", "boot_2", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := faultStage(t)
			owner := newDesk()
			d := g.drive(t, func(_ *run.Input, deps *run.Deps) {
				deps.Owner = owner
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
