package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

func exerciseLeases(t *testing.T, d Driver) {
	t.Run("one active run per connection", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		var active *store.ActiveError
		if _, err := b.s.Acquire(t.Context(), b.newRun("a"), "host-1", "boot-1", time.Minute); !errors.As(err, &active) ||
			active.RunID != l.RunID {
			t.Fatalf("second run: %v", err)
		}
		b.run("b")
	})
	t.Run("of many who ask at once, one gets it", func(t *testing.T) {
		b := open(t, d)
		var wg sync.WaitGroup
		errs := make(chan error, 16)
		for range cap(errs) {
			r := b.newRun("a")
			wg.Go(func() {
				_, err := b.s.Acquire(t.Context(), r, "host-1", "boot-1", time.Minute)
				errs <- err
			})
		}
		wg.Wait()
		won := 0
		for range cap(errs) {
			var active *store.ActiveError
			if err := <-errs; err == nil {
				won++
			} else if !errors.As(err, &active) {
				t.Error(err)
			}
		}
		equal(t, "winners", won, 1)
	})
	t.Run("the fence grows with every run, also over a restart", func(t *testing.T) {
		b := open(t, d)
		for want := uint64(1); want <= 3; want++ {
			l := b.run("a")
			equal(t, "fence", l.Fence, want)
			b.end(l)
			b.reopen()
			if b.d.Forgets {
				continue
			}
		}
	})
	t.Run("the lease holds what was asked for, is listed, and renews", func(t *testing.T) {
		b := open(t, d)
		r := b.newRun("a")
		l, err := b.s.Acquire(t.Context(), r, "host-7", "boot-9", time.Minute)
		b.must(err)
		want := store.Lease{
			ConnectionID: "a", RunID: r.ID, TraceID: r.TraceID, Fence: 1, HostID: "host-7", BootEpoch: "boot-9",
			TriggerKind: "manual", StartedAt: r.StartedAt, ExpiresAt: l.ExpiresAt,
		}
		equal(t, "lease", l, want)
		b.reopen()
		all, err := b.s.Leases(t.Context())
		b.must(err)
		equal(t, "leases", all, []store.Lease{want})
		renewed, err := b.s.Renew(t.Context(), l, time.Hour)
		b.must(err)
		if !renewed.ExpiresAt.After(l.ExpiresAt) {
			t.Fatalf("renewed until %v, was %v", renewed.ExpiresAt, l.ExpiresAt)
		}
	})
	t.Run("a lease that is not current commits and renews nothing", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		stale := l
		stale.Fence++
		other := l
		other.ConnectionID = "b"
		for i, bad := range []store.Lease{stale, other} {
			_, err := b.commit(&store.Commit{Lease: bad, Batches: []*store.Batch{batch("s", up("k", `{}`))}})
			if !errors.Is(err, store.ErrFenced) {
				t.Fatalf("commit with stale lease %d: %v", i, err)
			}
			if _, err := b.s.Renew(t.Context(), bad, time.Minute); !errors.Is(err, store.ErrFenced) {
				t.Fatalf("renew of stale lease %d: %v", i, err)
			}
		}
		equal(t, "content", b.content("a", "s"), map[string]string{})
		b.ingest(l, batch("s", up("k", `{}`)))
	})
	t.Run("ending twice, as two hosts reconciling do, changes nothing", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.end(l)
		if _, err := b.commit(b.ending(l)); !errors.Is(err, store.ErrRunTerminal) {
			t.Fatalf("second end: %v", err)
		}
		all, err := b.s.Leases(t.Context())
		b.must(err)
		equal(t, "leases", len(all), 0)
		b.run("a")
	})
}

func exerciseJournals(t *testing.T, d Driver) {
	t.Run("a journal is kept until its run ends, and is no other's", func(t *testing.T) {
		b := open(t, d)
		l, other := b.run("a"), b.run("b")
		const far = 1 << 62
		long := bytes.Repeat([]byte{0, 0xff, 7}, store.MaxJournalPiece/3)
		b.put(&store.Commit{Lease: l,
			Journal: []store.JournalPiece{{N: 0, Data: []byte("x")}, {N: 1, Data: []byte("first")}}})
		b.put(&store.Commit{Lease: l, Journal: []store.JournalPiece{{N: 1, Data: long}},
			Events: []store.Event{b.event(l, "run.log")}})
		b.put(&store.Commit{Lease: other, Journal: []store.JournalPiece{{N: 0, Data: []byte("y")}}})
		b.put(&store.Commit{Lease: l, Journal: []store.JournalPiece{{N: far, Data: []byte("z")}}})
		b.restart()
		for _, c := range []struct {
			run  store.RunID
			n    uint64
			want []byte
		}{{l.RunID, 0, []byte("x")}, {l.RunID, 1, long}, {l.RunID, 2, nil}, {l.RunID, far, []byte("z")},
			{other.RunID, 0, []byte("y")}, {other.RunID, 1, nil}} {
			got, err := b.s.Journal(t.Context(), c.run, c.n)
			if c.want == nil && !errors.Is(err, store.ErrNotFound) || c.want != nil && err != nil {
				t.Fatalf("piece %d of %s: %v", c.n, c.run, err)
			}
			if !bytes.Equal(got, c.want) {
				t.Fatalf("piece %d of %s: %d bytes, want %d", c.n, c.run, len(got), len(c.want))
			}
		}
		b.end(l)
		b.restart()
		for _, n := range []uint64{0, 1, far} {
			if _, err := b.s.Journal(t.Context(), l.RunID, n); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("piece %d of a run that is over: %v", n, err)
			}
		}
		_, err := b.s.Journal(t.Context(), other.RunID, 0)
		b.must(err)
	})
	t.Run("a run that is taken over is its former holder's no more", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.put(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.started")}})
		b.reopen()
		taken, err := b.s.TakeOver(t.Context(), l, "host-2", "boot-2", time.Minute)
		b.must(err)
		if taken.Fence <= l.Fence || taken.HostID != "host-2" || taken.BootEpoch != "boot-2" || taken.RunID != l.RunID ||
			taken.TraceID != l.TraceID {
			t.Fatalf("taken over: %+v", taken)
		}
		all, err := b.s.Leases(t.Context())
		b.must(err)
		equal(t, "leases", all, []store.Lease{taken})
		if _, err := b.commit(&store.Commit{Lease: l, Events: []store.Event{b.event(l, "run.log")}}); !errors.Is(err,
			store.ErrFenced) {
			t.Fatalf("commit of the former holder: %v", err)
		}
		if _, err := b.s.TakeOver(t.Context(), l, "host-3", "boot-3", time.Minute); !errors.Is(err, store.ErrFenced) {
			t.Fatalf("taken over twice: %v", err)
		}
		ack := b.put(&store.Commit{Lease: taken, Events: []store.Event{b.event(l, "run.resumed")}})
		equal(t, "sequence", ack.FirstSequence, uint64(1))
		b.end(taken)
		if _, err := b.s.TakeOver(t.Context(), taken, "host-3", "boot-3", time.Minute); !errors.Is(err, store.ErrFenced) {
			t.Fatalf("taken over after its end: %v", err)
		}
		if next := b.run("a"); next.Fence <= taken.Fence {
			t.Fatalf("fence %d after %d", next.Fence, taken.Fence)
		}
	})
}

func exerciseRuns(t *testing.T, d Driver) {
	b := open(t, d)
	if _, err := b.s.Run(t.Context(), "run_none"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("absent run: %v", err)
	}
	want := map[store.ConnectionID][]store.RunID{}
	for i := range 7 {
		c := store.ConnectionID(fmt.Sprintf("c%d", i%2))
		l := b.run(c)
		want[c] = append([]store.RunID{l.RunID}, want[c]...)
		want[""] = append([]store.RunID{l.RunID}, want[""]...)
		b.end(l)
	}
	b.reopen()
	for c, ids := range want {
		var got []store.RunID
		var before store.RunID
		for {
			page, err := b.s.Runs(t.Context(), c, before, 2)
			b.must(err)
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				got = append(got, r.ID)
				equal(t, "status", r.Status, "succeeded")
			}
			before = got[len(got)-1]
		}
		equal(t, fmt.Sprintf("runs of %q, newest first", c), got, ids)
	}
}
