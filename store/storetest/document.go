package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

func exerciseDocuments(t *testing.T, d Driver) {
	write := func(id, data string, revision *uint64) store.Write {
		return store.Write{Kind: store.Webhooks, ID: id, Data: json.RawMessage(data), If: revision}
	}
	at := func(n uint64) *uint64 { return &n }
	t.Run("revisions count changes and guard them", func(t *testing.T) {
		b := open(t, d)
		b.must(b.s.Write(t.Context(), write("a", `1`, store.Absent())))
		b.must(b.s.Write(t.Context(), write("a", `2`, at(1))))
		b.reopen()
		var conflict *store.ConflictError
		if err := b.s.Write(t.Context(), write("a", `3`, at(1))); !errors.As(err, &conflict) || conflict.Revision != 2 {
			t.Fatalf("a change of a revision that is gone: %v", err)
		}
		got, err := b.s.Document(t.Context(), store.Webhooks, "a")
		b.must(err)
		equal(t, "document", got, store.Document{Kind: store.Webhooks, ID: "a", Revision: 2, Data: json.RawMessage(`2`)})
		b.must(b.s.Write(t.Context(), store.Write{Kind: store.Webhooks, ID: "a"}))
		if _, err := b.s.Document(t.Context(), store.Webhooks, "a"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("read of a deleted document: %v", err)
		}
		b.verify()
	})
	t.Run("all or none", func(t *testing.T) {
		b := open(t, d)
		if err := b.s.Write(t.Context(), write("a", `1`, nil), write("b", `1`, at(7))); err == nil {
			t.Fatal("a write with a wrong revision went through")
		}
		got, err := b.s.Documents(t.Context(), store.DocumentQuery{Kind: store.Webhooks})
		b.must(err)
		equal(t, "documents", got, []store.Document(nil))
	})
	t.Run("whoever is told of a conflict can read what it is with", func(t *testing.T) {
		b := open(t, d)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					doc, err := b.s.Document(t.Context(), store.Webhooks, "a")
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						t.Error(err)
						return
					}
					err = b.s.Write(t.Context(), write("a", `1`, &doc.Revision))
					var conflict *store.ConflictError
					if err != nil && !errors.As(err, &conflict) {
						t.Error(err)
						return
					}
					if err == nil {
						continue
					}
					if now, err := b.s.Document(t.Context(), store.Webhooks, "a"); err != nil || now.Revision < conflict.Revision {
						t.Errorf("a conflict with revision %d; read %d, %v", conflict.Revision, now.Revision, err)
					}
				}
			})
		}
		wg.Wait()
	})
	t.Run("of many who make the same one, one does", func(t *testing.T) {
		b := open(t, d)
		var wg sync.WaitGroup
		errs := make(chan error, 16)
		for range cap(errs) {
			wg.Go(func() { errs <- b.s.Write(t.Context(), write("a", `1`, store.Absent())) })
		}
		wg.Wait()
		won := 0
		for range cap(errs) {
			if <-errs == nil {
				won++
			}
		}
		equal(t, "winners", won, 1)
	})
	t.Run("listed in the order of ids, by prefix, page by page, both ways", func(t *testing.T) {
		b := open(t, d)
		for i := range 5 {
			b.must(b.s.Write(t.Context(), write(fmt.Sprintf("p/%d", i), `1`, nil)))
		}
		b.must(b.s.Write(t.Context(), write("q", `1`, nil),
			store.Write{Kind: store.Keys, ID: "p/2", Data: json.RawMessage(`1`)}))
		list := func(q store.DocumentQuery) (ids []string) {
			q.Kind = store.Webhooks
			got, err := b.s.Documents(t.Context(), q)
			b.must(err)
			for _, d := range got {
				ids = append(ids, d.ID)
			}
			return ids
		}
		equal(t, "all", list(store.DocumentQuery{}), []string{"p/0", "p/1", "p/2", "p/3", "p/4", "q"})
		equal(t, "prefix", list(store.DocumentQuery{Prefix: "p/", Limit: 2}), []string{"p/0", "p/1"})
		equal(t, "after", list(store.DocumentQuery{Prefix: "p/", After: "p/1", Limit: 2}), []string{"p/2", "p/3"})
		equal(t, "descending", list(store.DocumentQuery{Prefix: "p/", Descending: true, Limit: 2}), []string{"p/4", "p/3"})
		equal(t, "before", list(store.DocumentQuery{Prefix: "p/", Descending: true, After: "p/3"}),
			[]string{"p/2", "p/1", "p/0"})
	})
	t.Run("what has expired is absent, and swept", func(t *testing.T) {
		b := open(t, d)
		over := write("a", `1`, nil)
		over.ExpiresAt = time.Now().Add(-time.Second)
		kept := write("b", `1`, nil)
		kept.ExpiresAt = time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
		b.must(b.s.Write(t.Context(), over, kept))
		if _, err := b.s.Document(t.Context(), store.Webhooks, "a"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("read of an expired document: %v", err)
		}
		b.must(b.s.Sweep(t.Context()))
		b.must(b.s.Write(t.Context(), write("a", `2`, store.Absent())))
		got, err := b.s.Document(t.Context(), store.Webhooks, "b")
		b.must(err)
		equal(t, "expiry", got.ExpiresAt, kept.ExpiresAt)
		// What an older content of it said does not count, nor what another of its name says.
		late := kept
		late.ExpiresAt = time.Now().Add(-time.Second)
		b.must(b.s.Write(t.Context(), late))
		b.must(b.s.Write(t.Context(), kept,
			store.Write{Kind: store.Keys, ID: "b", Data: over.Data, ExpiresAt: over.ExpiresAt}))
		b.must(b.s.Sweep(t.Context()))
		_, err = b.s.Document(t.Context(), store.Webhooks, "b")
		b.must(err)
		b.must(b.s.Write(t.Context(), late, kept)) // twice in one call: the last one counts
		b.must(b.s.Sweep(t.Context()))
		_, err = b.s.Document(t.Context(), store.Webhooks, "b")
		b.must(err)
	})
	t.Run("written with the start of a run, or neither", func(t *testing.T) {
		b := open(t, d)
		w := write("slot", `1`, store.Absent())
		_, err := b.s.Acquire(t.Context(), b.newRun("a"), "host-1", "boot-1", time.Minute, w)
		b.must(err)
		var conflict *store.ConflictError
		if _, err := b.s.Acquire(t.Context(), b.newRun("b"), "host-1", "boot-1", time.Minute, w); !errors.As(err, &conflict) {
			t.Fatalf("second start of one slot: %v", err)
		}
		leases, err := b.s.Leases(t.Context())
		b.must(err)
		equal(t, "leases", len(leases), 1)
		var active *store.ActiveError
		other := write("other", `1`, nil)
		if _, err := b.s.Acquire(t.Context(), b.newRun("a"), "host-1", "boot-1", time.Minute,
			other); !errors.As(err, &active) {
			t.Fatalf("start of an active connection: %v", err)
		}
		if _, err := b.s.Document(t.Context(), store.Webhooks, "other"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("a document was written with a start that was refused: %v", err)
		}
	})
}
