package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// fullStore takes no records, or has nothing settled, until it is let.
type fullStore struct {
	store.Store
	offered chan struct{} // closed once it has something to wait with
	hold    func(*store.Commit) bool
	accept  bool
	room    chan struct{}
}

func (s *fullStore) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	if !s.hold(c) {
		return s.Store.Submit(ctx, c)
	}
	close(s.offered)
	if !s.accept {
		<-ctx.Done()
		return nil, store.ErrNoSpace
	}
	receipt, settle := store.NewReceipt()
	go func() {
		<-s.room
		settle(store.Ack{}, store.ErrNoSpace)
	}()
	return receipt, nil
}

// S125, R173: a run that waits for space on the disk is cancelled at once, in the
// middle of that wait.
func TestCancelOnAFullDisk(t *testing.T) {
	for _, c := range []struct {
		name   string
		hold   func(*store.Commit) bool
		accept bool
	}{
		{"records are not taken", func(c *store.Commit) bool { return len(c.Batches) > 0 }, false},
		{"a cursor is not settled", func(c *store.Commit) bool { return len(c.Staged) > 0 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			full := &fullStore{hold: c.hold, accept: c.accept, offered: make(chan struct{}), room: make(chan struct{})}
			d := faultStage(t).drive(t, func(_ *run.Input, deps *run.Deps) {
				full.Store, deps.Store = deps.Store, full
			}).started()
			d.guest.does(aRecord)
			d.heard("credit 1")
			d.guest.does(aState)
			<-full.offered
			d.run.Cancel(run.CancelRequest{Cause: "owner"})
			d.heard("end emits")
			d.heard("reply 3 ECANCELED")
			d.guest.leaves(0)
			close(full.room)
			select {
			case <-d.ended:
			case <-time.After(patience):
				t.Fatal("the run does not end")
			}
			if d.result.Status != abi.Cancelled || *d.result.TerminalReason != "owner_cancelled" {
				t.Errorf("result %+v", d.result)
			}
		})
	}
}
