package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/store"
)

func exerciseEvents(t *testing.T, d Driver) {
	t.Run("sequence from 0 without gaps, causation within a commit", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		var want []store.Event
		for i := range 5 {
			c := &store.Commit{Lease: l}
			for range i {
				c.Events = append(c.Events, b.event(l, "run.progress"))
			}
			ack := b.put(c)
			equal(t, "first sequence", ack.FirstSequence, uint64(len(want)))
			for j, e := range c.Events {
				e.Sequence, e.RecordedAt = uint64(len(want)), ack.RecordedAt
				if j > 0 {
					e.CausationID = c.Events[0].ID
				}
				want = append(want, e)
			}
			b.reopen()
		}
		for from := range uint64(len(want) + 2) {
			got, err := b.s.Events(t.Context(), l.RunID, from, 100)
			b.must(err)
			equal(t, "events", got, want[min(int(from), len(want)):], cmp.Comparer(sameMilli))
		}
		got, err := b.s.Events(t.Context(), l.RunID, 1, 2)
		b.must(err)
		equal(t, "limited events", got, want[1:3], cmp.Comparer(sameMilli))
	})
	t.Run("the newest events before a sequence, and where a timeline stands", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		head := func(want store.RunHead) {
			t.Helper()
			got, err := b.s.RunHead(t.Context(), l.RunID)
			b.must(err)
			equal(t, "head", got, want)
		}
		head(store.RunHead{})
		got, err := b.s.EventsBefore(t.Context(), l.RunID, 0, 5)
		b.must(err)
		equal(t, "events of a run without", len(got), 0)
		for range 300 {
			b.put(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.progress"), b.event(l, "run.progress")}})
		}
		head(store.RunHead{Next: 600})
		b.end(l)
		b.reopen()
		head(store.RunHead{Next: 601, Ended: true})
		for _, c := range []struct {
			before      uint64
			limit       int
			first, many uint64
		}{
			{0, 1, 600, 1}, {0, 0, 501, 100}, {601, 2, 599, 2}, {9999, 2, 599, 2}, {600, 3, 597, 3}, {3, 2, 1, 2}, {3, 10, 0, 3},
			{1, 1, 0, 1}, {0, 5000, 0, 601},
		} {
			got, err := b.s.EventsBefore(t.Context(), l.RunID, c.before, c.limit)
			b.must(err)
			equal(t, fmt.Sprintf("events before %d, at most %d", c.before, c.limit), uint64(len(got)), c.many)
			for i, e := range got {
				equal(t, "sequence", e.Sequence, c.first+uint64(i))
			}
		}
		if _, err := b.s.RunHead(t.Context(), "run_none"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("head of an absent run: %v", err)
		}
		got, err = b.s.EventsBefore(t.Context(), "run_none", 0, 5)
		b.must(err)
		equal(t, "events of an absent run", len(got), 0)
	})
	t.Run("nothing follows the terminal event", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.end(l)
		_, err := b.commit(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.progress")}})
		if !errors.Is(err, store.ErrRunTerminal) {
			t.Fatalf("late event: %v", err)
		}
		got, err := b.s.Events(t.Context(), l.RunID, 0, 100)
		b.must(err)
		equal(t, "events", len(got), 1)
	})
	t.Run("runs do not share a timeline", func(t *testing.T) {
		b := open(t, d)
		a, c := b.run("a"), b.run("c")
		b.put(&store.Commit{Lease: a, Events: []store.Event{b.event(a, "run.started")}})
		ack := b.put(&store.Commit{Lease: c, Events: []store.Event{b.event(c, "run.started")}})
		equal(t, "first sequence", ack.FirstSequence, uint64(0))
	})
}

// sameMilli compares times as precisely as a timeline keeps them.
func sameMilli(a, b time.Time) bool {
	return a.UTC().Truncate(time.Millisecond).Equal(b.UTC().Truncate(time.Millisecond))
}

func exerciseTerminal(t *testing.T, d Driver) {
	t.Run("one commit ends the run, drops its staged cursors, questions and lease", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.put(&store.Commit{Lease: l, Staged: []store.State{state(l, "s", `1`), state(l, "u", `2`)},
			Ask: &store.Interaction{ID: "int_1", RunID: l.RunID, Kind: "otp", Message: "code?", OpenedAt: epoch}})
		b.reopen()
		c := b.ending(l)
		c.Advance = []store.State{state(l, "s", `1`)}
		c.Staged = []store.State{state(l, "v", `3`)}
		b.put(c)
		b.reopen()
		staged, err := b.s.Staged(t.Context(), l.RunID)
		b.must(err)
		equal(t, "staged", len(staged), 0)
		pending, err := b.s.Pending(t.Context(), "")
		b.must(err)
		equal(t, "pending", len(pending), 0)
		leases, err := b.s.Leases(t.Context())
		b.must(err)
		equal(t, "leases", len(leases), 0)
		states, err := b.s.States(t.Context(), "a", "")
		b.must(err)
		equal(t, "states", states, []store.State{state(l, "s", `1`)})
		r, err := b.s.Run(t.Context(), l.RunID)
		b.must(err)
		equal(t, "run", r, *c.Run)
	})
	t.Run("of commits that end a run, one does", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		var receipts []*store.Receipt
		for range 4 {
			r, err := b.s.Submit(t.Context(), b.ending(l))
			b.must(err)
			receipts = append(receipts, r)
		}
		for i, r := range receipts {
			if _, err := r.Result(); i == 0 != (err == nil) || i > 0 && !errors.Is(err, store.ErrRunTerminal) {
				t.Fatalf("end %d: %v", i, err)
			}
		}
		got, err := b.s.Events(t.Context(), l.RunID, 0, 100)
		b.must(err)
		equal(t, "terminal events", len(got), 1)
	})
}

func exerciseWatch(t *testing.T, d Driver) {
	wait := func(t *testing.T, ch <-chan struct{}) {
		t.Helper()
		select {
		case <-ch:
		case <-time.After(10 * time.Second):
			t.Fatal("no wake-up")
		}
	}
	silent := func(t *testing.T, ch <-chan struct{}) {
		t.Helper()
		select {
		case <-ch:
			t.Fatal("woken without an event")
		default:
		}
	}
	t.Run("a wake-up after the commit can be read, coalesced", func(t *testing.T) {
		b := open(t, d)
		l, other := b.run("a"), b.run("o")
		mine, stop := b.s.Watch(l.RunID)
		defer stop()
		every, stopAll := b.s.Watch("")
		defer stopAll()
		theirs, stopTheirs := b.s.Watch(other.RunID)
		defer stopTheirs()
		for range 3 {
			b.put(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.progress")}})
		}
		wait(t, mine)
		wait(t, every)
		silent(t, theirs)
		got, err := b.s.Events(t.Context(), l.RunID, 0, 100)
		b.must(err)
		equal(t, "events", len(got), 3)
		silent(t, mine)
		silent(t, every)
	})
	t.Run("every event reaches a reader that only follows wake-ups", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		wake, stop := b.s.Watch(l.RunID)
		defer stop()
		const n = 50
		for range n {
			_, err := b.s.Submit(t.Context(), &store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.progress")}})
			b.must(err)
		}
		for next := uint64(0); next < n; {
			wait(t, wake)
			got, err := b.s.Events(t.Context(), l.RunID, next, 100)
			b.must(err)
			next += uint64(len(got))
		}
	})
	t.Run("a stopped watcher hears nothing", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		wake, stop := b.s.Watch(l.RunID)
		stop()
		b.put(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.progress")}})
		silent(t, wake)
	})
}
