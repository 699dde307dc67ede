package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// fullStore accepts no records, or settles no commit, until the test lets it.
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

// A run that waits for space on the disk can be cancelled at once, during that wait.
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

// stalling is a store whose disk is full until there is room: it accepts no records, or
// settles no commit at all, and says so.
type stalling struct {
	store.Store
	halted bool
	full   atomic.Bool
	room   chan struct{}
}

func (s *stalling) Stalled() error {
	if s.full.Load() {
		return fmt.Errorf("%w: 3 MiB are free", store.ErrNoSpace)
	}
	return nil
}

func (s *stalling) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	switch {
	case !s.full.Load() || !s.halted && len(c.Batches) == 0:
		return s.Store.Submit(ctx, c)
	case !s.halted:
		select {
		case <-s.room:
			return s.Store.Submit(ctx, c)
		case <-ctx.Done():
			return nil, store.ErrNoSpace
		}
	}
	receipt, settle := store.NewReceipt()
	go func() {
		<-s.room
		later, err := s.Store.Submit(context.Background(), c)
		if err != nil {
			settle(store.Ack{}, err)
			return
		}
		settle(later.Result())
	}()
	return receipt, nil
}

// Renew waits like any other commit.
func (s *stalling) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	if s.full.Load() && s.halted {
		select {
		case <-s.room:
		case <-ctx.Done():
			return store.Lease{}, ctx.Err()
		}
	}
	return s.Store.Renew(ctx, l, ttl)
}

// spare is what a run on a full disk may use up of its own time.
const spare = 4 * time.Second

// stalledDrive is a run on a full disk that shows it.
func stalledDrive(t *testing.T, halted bool) (d *drive, full *stalling, interrupt func()) {
	full = &stalling{halted: halted, room: make(chan struct{})}
	d = faultStage(t).drive(t, func(in *run.Input, deps *run.Deps) {
		full.Store, deps.Store = deps.Store, full
		deps.LeaseTTL, deps.LeaseRenew = time.Hour, 150*time.Millisecond // a renewal that waits keeps nobody waiting
		in.Budgets.Active, in.Budgets.Stall = spare, spare               // waiting for the disk costs none of it
	})
	d.ctx, interrupt = context.WithCancel(context.Background())
	t.Cleanup(interrupt)
	d.started()
	d.until("run.started")
	full.full.Store(true)
	d.guest.does(aRecord)
	d.heard("credit 1")
	d.guest.does(aState)
	shows(t, d, func(stalled string) bool { return strings.Contains(stalled, "3 MiB are free") })
	return d, full, interrupt
}

// shows waits until what a run says of its store is as it must be.
func shows(t *testing.T, d *drive, as func(stalled string) bool) {
	t.Helper()
	for end := time.Now().Add(patience); !as(d.run.Live().Stalled); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the run says %q", d.run.Live().Stalled)
		}
	}
}

// A run on a full disk reports it, keeps its guest waiting at no cost, and continues by
// itself when there is room. While events can still be written, an event says so at
// once.
func TestRoomAgain(t *testing.T) {
	for _, halted := range []bool{false, true} {
		t.Run(fmt.Sprintf("halted=%v", halted), func(t *testing.T) {
			t.Parallel()
			d, full, _ := stalledDrive(t, halted)
			if !halted {
				if e := d.until("run.assistance_requested"); !strings.Contains(string(e.Data), "3 MiB are free") {
					t.Errorf("the event says %s", e.Data)
				}
			}
			time.Sleep(spare + 500*time.Millisecond) // more than the run's budgets
			d.quiet()
			full.full.Store(false)
			close(full.room)
			shows(t, d, func(stalled string) bool { return stalled == "" })
			d.heard("reply 3 OK")
			d.guest.does(doneOne)
			d.heard("reply 4 OK")
			d.guest.leaves(0)
			p := d.end()
			if p.result.Status != abi.Succeeded || d.run.Live().Stalled != "" {
				t.Errorf("the run ended as %+v", p.result)
			}
			if got := types(p.events); strings.Count(got, "run.assistance_requested") != 1 ||
				strings.Count(got, "run.assistance_resolved") != 1 {
				t.Errorf("the timeline is %s", got)
			}
		})
	}
}

// An interrupt on a disk so full that the run's end cannot be written ends the run all
// the same, and so does a host that stops.
func TestLeaveAFullDisk(t *testing.T) {
	for _, c := range []struct{ who, reason string }{{"owner", "owner_cancelled"}, {"host", "controller_restarted"}} {
		t.Run(c.who, func(t *testing.T) {
			d, _, interrupt := stalledDrive(t, true)
			if c.who == "owner" {
				interrupt()
				d.heard("end emits")
				d.heard("reply 3 ECANCELED")
				d.guest.leaves(0)
			} else {
				d.run.Cancel(run.CancelRequest{Cause: run.CauseShutdown})
			}
			select {
			case <-d.ended:
			case <-time.After(patience):
				t.Fatal("the run does not end")
			}
			if *d.result.TerminalReason != c.reason || d.result.Failure == nil ||
				!strings.Contains(d.result.Failure.Message, "the disk is full") {
				t.Errorf("the run ended as %+v", d.result)
			}
		})
	}
}

// The event that says that the disk is full overtakes the records that wait for it. A run whose host
// is killed then, or later, is resumed from its journal all the same, and tells the end of the stall once.
func TestKilledOnAFullDisk(t *testing.T) {
	for _, later := range []bool{false, true} {
		t.Run(fmt.Sprintf("later=%v", later), func(t *testing.T) {
			t.Parallel()
			g := faultStage(t)
			full := &stalling{room: make(chan struct{})}
			key := bytes.Repeat([]byte{7}, 32)
			killed := g.drive(t, func(_ *run.Input, deps *run.Deps) {
				full.Store, deps.Store = deps.Store, full
				deps.History = &run.History{Key: key, Resumable: true}
			}).started()
			space := sync.OnceFunc(func() {
				full.full.Store(false)
				close(full.room)
			})
			t.Cleanup(space)
			killed.until("run.started")
			full.full.Store(true)
			killed.guest.does(aRecord)
			killed.heard("credit 1")
			killed.guest.does(aState)
			killed.until("run.assistance_requested")
			if later {
				space()
				killed.heard("reply 3 OK")
				killed.until("run.assistance_resolved")
			}

			next := g.resumed(t, killed, key, nil).begin()
			for _, c := range []fakeCall{{call: abi.CallStart}, aRecord, aState, doneOne} {
				next.guest.does(c)
			}
			for _, want := range []string{"reply 1 OK", "credit 1", "reply 3 OK", "reply 4 OK"} {
				next.heard(want)
			}
			next.guest.leaves(0)
			p := next.end()
			if p.result.Status != abi.Succeeded || p.result.RecordsAccepted != 1 {
				t.Errorf("the run ended as %+v", p.result)
			}
			for _, once := range []string{"run.assistance_requested", "run.assistance_resolved",
				"run.batch_ingested", "run.resumed"} {
				if got := types(p.events); strings.Count(got, once) != 1 {
					t.Errorf("not one %s in %s", once, got)
				}
			}
		})
	}
}
