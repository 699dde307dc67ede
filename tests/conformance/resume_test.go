package conformance

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

var journalKey = bytes.Repeat([]byte{7}, 32)

// killed is a run of a resumable connector that stored a record, and whose host is gone.
func (g *stage) killed(t *testing.T) *drive {
	t.Helper()
	d := g.drive(t, func(_ *run.Input, deps *run.Deps) {
		deps.History = &run.History{Key: journalKey, Resumable: true}
	}).started()
	d.guest.does(aRecord)
	d.heard("credit 1")
	d.guest.does(aState)
	d.heard("reply 3 OK")
	d.until("run.state_staged")
	return d
}

// A guest that makes no more calls while its run is resumed, or another one, ends with a cause: a cancellation is
// heard, and its processor time is limited. What it had stored stays and is counted, and its connection is free.
func TestEndsWhileResumed(t *testing.T) {
	for name, c := range map[string]struct {
		budget func(*run.Budgets)
		then   func(*drive)
		reason string
	}{
		"cancelled": {func(b *run.Budgets) { b.Prepare = 200 * time.Millisecond },
			func(d *drive) { d.run.Cancel(run.CancelRequest{Cause: "owner"}) }, "owner_cancel_forced"},
		"computes": {func(b *run.Budgets) { b.Compute = time.Minute },
			func(d *drive) { d.guest.computed.Store(int64(time.Hour)) }, "run_timed_out"},
		"differs": {func(*run.Budgets) {}, func(d *drive) { d.guest.does(aState) }, "replay_diverged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := faultStage(t)
			d := g.resumed(t, g.killed(t), journalKey, func(in *run.Input) {
				in.Budgets.CancelGrace = 10 * time.Millisecond
				c.budget(&in.Budgets)
			}).started()
			c.then(d)
			p := d.end()
			if *p.result.TerminalReason != c.reason {
				t.Errorf("the run ended as %+v", p.result)
			}
			if got := types(p.events); bytes.Count([]byte(got), []byte("run.batch_ingested")) != 1 {
				t.Error(got)
			}
			if _, err := g.host.Store.Journal(t.Context(), d.run.ID, 0); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("its journal: %v", err)
			}
			if leases, err := g.host.Store.Leases(t.Context()); err != nil || len(leases) > 0 {
				t.Error(leases, err)
			}
		})
	}
}

// A run that is being cancelled when its host is killed is not resumed.
func TestKilledWhileCancelled(t *testing.T) {
	t.Parallel()
	g := faultStage(t)
	d := g.killed(t)
	d.run.Cancel(run.CancelRequest{Cause: "owner"})
	d.until("run.cancel_requested")
	rec, err := g.host.Store.Run(t.Context(), d.run.ID)
	if err != nil || rec.Resumable || run.Outlives(rec, nil) {
		t.Errorf("%+v %v", rec, err)
	}
	d.guest.leaves(1)
	if p := d.end(); p.result.Status != abi.Cancelled {
		t.Errorf("the run ended as %+v", p.result)
	}
}
