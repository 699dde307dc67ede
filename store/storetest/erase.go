package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// owned fills a connection with some of everything, and leaves no run active.
func (b *bench) owned(c store.ConnectionID) store.Lease {
	b.t.Helper()
	b.must(b.s.PutConnection(b.t.Context(), store.Connection{ID: c, ConnectorID: "x", CreatedAt: epoch, UpdatedAt: epoch}))
	l := b.run(c)
	var changes []store.Change
	for i := range 300 {
		changes = append(changes, up(fmt.Sprint("k", i), fmt.Sprint(i)))
	}
	b.ingest(l, batch("s", changes...), batch("t", up("k", `1`), del("k")))
	b.ingest(l, batch("s", up("k1", `"again"`), del("k2")))
	b.put(&store.Commit{
		Lease: l, Grant: "g", Advance: []store.State{state(l, "s", `1`)},
		Gaps: []store.DetailGap{{ID: "gap_1", Stream: "s", Ref: "k1", Status: "pending", CreatedAt: epoch,
			UpdatedAt: epoch, RunID: l.RunID}},
	})
	b.end(l)
	return l
}

// left counts what a connection has: itself, streams, records, cursors, gaps, runs.
func (b *bench) left(c store.ConnectionID) []int {
	b.t.Helper()
	n := make([]int, 6)
	switch _, err := b.s.Connection(b.t.Context(), c); {
	case err == nil:
		n[0] = 1
	case !errors.Is(err, store.ErrNotFound):
		b.t.Fatal(err)
	}
	streams, err := b.s.Streams(b.t.Context(), c)
	b.must(err)
	n[1] = len(streams)
	for _, s := range []store.Stream{"s", "t"} {
		n[2] += len(b.all(store.RecordQuery{Connection: c, Stream: s, Deleted: true}))
	}
	states, err := b.s.States(b.t.Context(), c, "g")
	b.must(err)
	gaps, err := b.s.Gaps(b.t.Context(), c, "g", "")
	b.must(err)
	runs, err := b.s.Runs(b.t.Context(), c, "", 0)
	b.must(err)
	n[3], n[4], n[5] = len(states), len(gaps), len(runs)
	return n
}

func exerciseErase(t *testing.T, d Driver) {
	all := []int{1, 2, 301, 1, 1, 1}
	t.Run("a connection goes, its records stay or go with it", func(t *testing.T) {
		for _, erase := range []bool{false, true} {
			b := open(t, d)
			l := b.owned("a")
			b.owned("ab")
			b.must(b.s.DeleteConnection(t.Context(), "a", erase))
			want := []int{0, 2, 301, 1, 1, 1}
			if erase {
				want = []int{0, 0, 0, 0, 0, 1}
			}
			for range 2 {
				equal(t, "left", b.left("a"), want)
				equal(t, "left of the other", b.left("ab"), all)
				events, err := b.s.Events(t.Context(), l.RunID, 0, 0)
				b.must(err)
				equal(t, "events", len(events), 3)
				b.verify()
				b.reopen()
			}
			if _, err := b.s.Record(t.Context(), "a", "s", "k1"); errors.Is(err, store.ErrNotFound) != erase {
				t.Fatalf("record of a deleted connection, erased %v: %v", erase, err)
			}
		}
	})
	t.Run("what a deleted connection left can be erased", func(t *testing.T) {
		b := open(t, d)
		b.owned("a")
		b.must(b.s.DeleteConnection(t.Context(), "a", false))
		b.must(b.s.DeleteConnection(t.Context(), "a", true))
		equal(t, "left", b.left("a"), []int{0, 0, 0, 0, 0, 1})
		for _, erase := range []bool{false, true} {
			if err := b.s.DeleteConnection(t.Context(), "a", erase); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("erased before: %v", err)
			}
		}
	})
	t.Run("an active run keeps its connection", func(t *testing.T) {
		b := open(t, d)
		b.owned("a")
		l := b.run("a")
		var active *store.ActiveError
		if err := b.s.DeleteConnection(t.Context(), "a", true); !errors.As(err, &active) || active.RunID != l.RunID {
			t.Fatalf("delete during a run: %v", err)
		}
		equal(t, "left", b.left("a"), []int{1, 2, 301, 1, 1, 2})
	})
	t.Run("one of the same name begins anew, and its leases do not", func(t *testing.T) {
		b := open(t, d)
		was := b.owned("a")
		b.must(b.s.DeleteConnection(t.Context(), "a", true))
		l := b.owned("a")
		if l.Fence <= was.Fence {
			t.Fatalf("fence %d after %d", l.Fence, was.Fence)
		}
		equal(t, "left", b.left("a"), []int{1, 2, 301, 1, 1, 2})
		equal(t, "last version", b.stats("a", "s").LastVersion, uint64(302))
		b.verify()
	})
}

func exercisePrune(t *testing.T, d Driver) {
	t.Run("a timeline goes whole, its run stays", func(t *testing.T) {
		b := open(t, d)
		ended := func() store.Lease {
			l := b.run("a")
			for range 5 {
				c := &store.Commit{Lease: l}
				for range 100 {
					c.Events = append(c.Events, b.event(l, "run.progress"))
				}
				b.put(c)
			}
			b.end(l)
			return l
		}
		l, other := ended(), ended()
		want, err := b.s.Run(t.Context(), l.RunID)
		b.must(err)
		want.Pruned = true
		for range 2 {
			b.must(b.s.Prune(t.Context(), l.RunID))
			got, err := b.s.Run(t.Context(), l.RunID)
			b.must(err)
			equal(t, "run", got, want)
			for id, n := range map[store.RunID]int{l.RunID: 0, other.RunID: 501} {
				events, err := b.s.Events(t.Context(), id, 0, 1000)
				b.must(err)
				newest, err := b.s.EventsBefore(t.Context(), id, 0, 1000)
				b.must(err)
				equal(t, "events", []int{len(events), len(newest)}, []int{n, n})
			}
			b.verify()
			b.reopen()
		}
		if _, err := b.commit(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.progress")}}); !errors.Is(err,
			store.ErrRunTerminal) {
			t.Fatalf("commit to a pruned run: %v", err)
		}
	})
	t.Run("not of a run that goes on, nor of none", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.put(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.started")}})
		var active *store.ActiveError
		if err := b.s.Prune(t.Context(), l.RunID); !errors.As(err, &active) || active.RunID != l.RunID {
			t.Fatalf("active run: %v", err)
		}
		if err := b.s.Prune(t.Context(), "run_none"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("absent run: %v", err)
		}
	})
	t.Run("the latest of a connection and all that are recent are kept", func(t *testing.T) {
		b := open(t, d)
		var old []store.RunID
		at := epoch.Add(time.Hour) // when every run here ended
		for range 6 {
			l := b.run("a")
			b.end(l)
			old = append(old, l.RunID)
		}
		b.end(b.run("c"))
		b.run("c")
		for _, c := range []struct {
			keep   int
			before time.Time
			want   []store.RunID
		}{
			{0, at, nil},
			{6, at.Add(1), nil},
			{4, at.Add(1), old[:2]},
		} {
			got, err := store.Prunable(t.Context(), b.s, c.keep, c.before, 0)
			b.must(err)
			equal(t, fmt.Sprintf("keep %d", c.keep), got, c.want)
		}
		got, err := store.Prunable(t.Context(), b.s, 1, at.Add(1), 2)
		b.must(err)
		equal(t, "the oldest two", got, old[:2])
		for _, id := range got {
			b.must(b.s.Prune(t.Context(), id))
		}
		got, err = store.Prunable(t.Context(), b.s, 1, at.Add(1), 2)
		b.must(err)
		equal(t, "the next two", got, old[2:4])
	})
}
