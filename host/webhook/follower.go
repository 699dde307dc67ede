package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/store"
)

const (
	atOnce      = 4   // concurrent attempts of one webhook
	maxWrites   = 256 // in one commit
	slack       = time.Minute
	storeWait   = 5 * time.Second // wait before a lane is tried again after an error of the store
	failingTime = 5 * 24 * time.Hour
)

// A follower delivers the events of all runs to one webhook. Unless noted otherwise, only the goroutine that runs loop
// accesses its fields; advance runs in other goroutines and gets a copy of a lane.
type follower struct {
	hook    stored                                   // its definition, and its failures so far
	keys    atomic.Pointer[func(time.Time) [][]byte] // keys for signing; Rotate replaces them
	store   Store
	post    func(context.Context, message) (int, error)
	now     func() time.Time // by which the store dates events
	slots   chan struct{}    // shared by all webhooks; taken for each attempt and its reads
	most    int              // maximum number of lanes; the scan waits while there are more
	rescan  func()           // requests a scan
	log     *slog.Logger
	observe func(outcome string)
	audit   func(ctx context.Context, id, because string)

	lanes map[store.RunID]*track
	// Invariant: a run that started before horizon has a document or no longer needs one; a run that started before
	// known has a lane or needs none. horizon is durable and not later than known.
	horizon, known time.Time
	missed         time.Time // start of the first run in this scan for which there was no room; zero for none
	scanned        time.Time // end of the last scan that went back to known
	passed         int       // runs found by scans since horizon moved
	busy           int
	stopped        string // reason for disabling the webhook

	// floor is the start time from which the next scan lists runs: known in milliseconds, or never. Scans read it
	// concurrently.
	floor atomic.Int64

	scans   chan scanPart
	results chan step
	cancel  context.CancelFunc
	wg      sync.WaitGroup // of loop and advance
	gone    chan struct{}  // closed when loop has ended
}

// A track is a lane with its state in memory.
type track struct {
	lane
	busy   bool
	unread bool // there may be unread events
	kept   bool // it has a document
}

const never = int64(1) << 62

// load reads the lanes of the webhook.
func (f *follower) load(ctx context.Context) error {
	f.lanes, f.horizon = map[store.RunID]*track{}, f.hook.CreatedAt
	for after := ""; ; {
		docs, err := f.store.Documents(ctx, store.DocumentQuery{Kind: store.Deliveries, Prefix: f.hook.ID, After: after,
			Limit: 1000})
		if err != nil {
			return err
		}
		if len(docs) == 0 {
			f.known = f.horizon
			f.publish()
			return nil
		}
		for _, d := range docs {
			if err := f.loadOne(d); err != nil {
				return fmt.Errorf("read delivery %s: %w", d.ID, err)
			}
			after = d.ID
		}
	}
}

func (f *follower) loadOne(d store.Document) error {
	_, run := owner(d.ID)
	if run == "" {
		var h horizon
		err := json.Unmarshal(d.Data, &h)
		f.horizon = h.At
		return err
	}
	t := &track{unread: true, kept: true}
	err := json.Unmarshal(d.Data, &t.lane)
	t.Run = run
	f.lanes[run] = t
	return err
}

// start serves the webhook until stop, or until it is disabled.
func (f *follower) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	f.scans, f.results, f.gone = make(chan scanPart), make(chan step), make(chan struct{})
	f.wg.Go(func() {
		defer close(f.gone)
		f.loop(ctx)
	})
}

// stop stops serving the webhook and waits for that.
func (f *follower) stop() {
	f.cancel()
	f.wg.Wait()
}

// tell passes part of a scan to the loop.
func (f *follower) tell(ctx context.Context, l scanPart) {
	select {
	case f.scans <- l:
	case <-f.gone:
	case <-ctx.Done():
	}
}

func (f *follower) loop(ctx context.Context) {
	defer f.drain()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for f.stopped == "" {
		timer.Reset(f.dispatch(ctx))
		select {
		case l := <-f.scans:
			f.take(ctx, l)
		case s := <-f.results:
			f.settle(ctx, s)
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	f.cancel()
	f.drain()
	f.disable(context.WithoutCancel(ctx))
}

// drain waits for attempts in progress.
func (f *follower) drain() {
	for ; f.busy > 0; f.busy-- {
		<-f.results
	}
}

// dispatch starts an attempt for each lane that is due, those due longest first, up to atOnce attempts. It returns the
// time until the next lane is due.
func (f *follower) dispatch(ctx context.Context) time.Duration {
	now := f.now()
	wait := time.Hour
	var ready []*track
	for _, t := range f.lanes {
		switch {
		case t.busy || t.Done || !t.unread:
		case t.Due.After(now):
			wait = min(wait, t.Due.Sub(now))
		default:
			ready = append(ready, t)
		}
	}
	slices.SortFunc(ready, func(a, b *track) int {
		if c := a.Due.Compare(b.Due); c != 0 {
			return c
		}
		return a.Started.Compare(b.Started)
	})
	for _, t := range ready {
		if f.busy == atOnce {
			break
		}
		f.busy++
		t.busy, t.unread = true, false
		l := t.lane
		f.wg.Go(func() { f.results <- f.advance(ctx, l) })
	}
	return wait
}
