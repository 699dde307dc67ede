package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A foundRun is a run that a scan has found.
type foundRun struct {
	id      store.RunID
	started time.Time
	tags    []string
	active  bool // it holds a lease of its connection
}

// A scanPart is a part of a scan of the runs that started since from. Parts come in order of time. The last one has
// until: all runs that started at least slack before it were found.
type scanPart struct {
	runs        []foundRun
	from, until time.Time
}

// take adds the runs of a part. The last part also advances known and marks all lanes as unread.
func (f *follower) take(ctx context.Context, l scanPart) {
	for _, r := range l.runs {
		f.add(ctx, r)
	}
	if l.until.IsZero() {
		return
	}
	if !l.from.After(f.known) {
		f.scanned = l.until
		until := l.until.Add(-slack)
		if !f.missed.IsZero() && f.missed.Before(until) {
			until = f.missed
		}
		if until.After(f.known) {
			f.known = until
		}
	}
	f.missed = time.Time{}
	for _, t := range f.lanes {
		t.unread = true
	}
	f.forgetDone(ctx)
}

// forgetDone drops finished lanes. If that makes room where there was none, it requests another scan.
func (f *follower) forgetDone(ctx context.Context) {
	if err := f.move(ctx); err != nil && ctx.Err() == nil {
		f.log.Warn("webhook: cursors not stored", "webhook", f.hook.ID, "error", err)
	}
	full := f.floor.Load() == never
	f.publish()
	if full && f.floor.Load() != never {
		f.rescan()
	}
}

func (f *follower) add(ctx context.Context, r foundRun) {
	f.passed++
	switch {
	case f.lanes[r.id] != nil || !f.tagged(r):
		return
	case !r.active && r.started.Before(f.horizon):
		return // already dealt with; the scan goes back this far for another webhook
	case !r.active && len(f.lanes) >= f.most:
		if f.missed.IsZero() || r.started.Before(f.missed) {
			f.missed = r.started
		}
		return
	}
	t := &track{lane: lane{Run: r.id, Started: r.started}, unread: true}
	if r.started.Before(f.horizon) {
		if err := f.keep(ctx, t.lane); err != nil {
			return // the next scan will find it again
		}
		t.kept = true
	}
	f.lanes[r.id] = t
}

func (f *follower) tagged(r foundRun) bool {
	return len(f.hook.Tags) == 0 ||
		slices.ContainsFunc(r.tags, func(t string) bool { return slices.Contains(f.hook.Tags, t) })
}

// maxPassed bounds the runs that a scan after a restart has to look at again.
const maxPassed = 1000

// move advances the durable horizon to known. It stores the open lanes before that and deletes the finished ones. It
// does nothing until that is worth a commit.
func (f *follower) move(ctx context.Context) error {
	if f.known.Sub(f.horizon) < slack && len(f.lanes) < f.most {
		return nil
	}
	var keep, erase []store.Write
	for _, t := range f.lanes {
		switch {
		case !t.Started.Before(f.known):
		case t.Done:
			erase = append(erase, store.Write{Kind: store.Deliveries, ID: laneID(f.hook.ID, t.Run)})
		case t.kept:
		case t.busy:
			return nil // its attempt is about to store a newer state
		default:
			keep = append(keep, t.write(f.hook.ID))
		}
	}
	if len(erase) == 0 && f.passed < maxPassed {
		return nil
	}
	keep = append(keep, horizon{f.known}.write(f.hook.ID))
	for part := range slices.Chunk(append(keep, erase...), maxWrites) {
		if err := f.store.Write(ctx, part...); err != nil {
			return err
		}
	}
	f.horizon, f.passed = f.known, 0
	for id, t := range f.lanes {
		switch {
		case !t.Started.Before(f.known):
		case t.Done:
			delete(f.lanes, id)
		default:
			t.kept = true
		}
	}
	return nil
}

// publish sets floor. A follower without room for more lanes requests no runs, except once per slack, because only
// scans advance known.
func (f *follower) publish() {
	if len(f.lanes) >= f.most && f.now().Sub(f.scanned) < slack {
		f.floor.Store(never)
		return
	}
	f.floor.Store(f.known.UnixMilli())
}
