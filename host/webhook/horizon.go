package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A foundRun is a run that a scan came across.
type foundRun struct {
	id      store.RunID
	started time.Time
	tags    []string
	active  bool // it holds its connection
}

// A scanPart is a part of a scan of the runs that started since from. Parts come
// oldest first. The last one has until: every run that started a slack before it
// was found.
type scanPart struct {
	runs        []foundRun
	from, until time.Time
}

// take adds the runs of a part of a scan. The last part also advances known, and
// has every lane look for new events.
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

// forgetDone drops lanes that are done. Where that makes room after there was none,
// it asks for another scan.
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
		return // dealt with before; another webhook made the scan go back so far
	case !r.active && len(f.lanes) >= f.most:
		if f.missed.IsZero() || r.started.Before(f.missed) {
			f.missed = r.started
		}
		return
	}
	t := &track{lane: lane{Run: r.id, Started: r.started}, unread: true}
	if r.started.Before(f.horizon) {
		if err := f.keep(ctx, t.lane); err != nil {
			return // the next scan finds it again
		}
		t.kept = true
	}
	f.lanes[r.id] = t
}

func (f *follower) tagged(r foundRun) bool {
	return len(f.hook.Tags) == 0 || slices.ContainsFunc(r.tags, func(t string) bool { return slices.Contains(f.hook.Tags, t) })
}

// maxPassed bounds what a scan after a restart has to look at again.
const maxPassed = 1000

// move advances the durable horizon to known: it stores the open lanes behind it and
// erases those that are done. It waits until that is worth a commit.
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
			return nil // what it is about to store is newer
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

// publish sets floor. A follower without room for more lanes asks for no runs, except
// once a slack, because only scans advance known.
func (f *follower) publish() {
	if len(f.lanes) >= f.most && time.Since(f.scanned) < slack {
		f.floor.Store(never)
		return
	}
	f.floor.Store(f.known.UnixMilli())
}
