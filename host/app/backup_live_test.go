package app_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// A writer does the same steps over and over while backups are made of its host: it
// sets a secret, commits a record with its event, and writes a document that names
// both.
type liveWriter struct {
	h     *app.Host
	v     *vault.Vault
	lease store.Lease
	done  atomic.Int64  // steps
	step  chan struct{} // one for every step, as long as somebody takes them
}

const liveRun = store.RunID("run_01K9W3C7RZ5D1N8V5X9M2QH4TB")

func (w *liveWriter) write(t *testing.T, n int) error {
	name := fmt.Sprintf("n%06d", n)
	if err := w.v.Set(fmt.Sprint("live", n/50), name, []byte(name)); err != nil {
		return err
	}
	b := new(store.Batch)
	b.Reset("rows")
	b.Append(store.Change{Key: []byte(name), Data: fmt.Appendf(nil, `{"n":%d,"pad":"%01000d"}`, n, n)})
	r, err := w.h.Store.Submit(t.Context(),
		&store.Commit{Lease: w.lease, Batches: []*store.Batch{b}, Events: []store.Event{{
			ID: store.EventID("evt_" + name), Type: "run.batch_ingested", RunID: w.lease.RunID, ConnectionID: "live",
			Data: json.RawMessage(`{}`),
		}}})
	if err != nil {
		return err
	}
	if _, err := r.Result(); err != nil {
		return err
	}
	w.done.Add(1)
	// What expires is over when the backup is restored, and belongs to it.
	over := store.Write{Kind: store.Replies, ID: name, Data: json.RawMessage(`{}`),
		ExpiresAt: time.Now().Add(time.Millisecond)}
	return w.h.Store.Write(t.Context(), store.Write{Kind: store.Keys, ID: name, Data: json.RawMessage(`{}`)}, over)
}

// A backup of a host that is in use: whatever it meets, it is a state that the host could have
// been killed in. Records, events, documents and secrets belong to one instant.
func TestBackupUnderWrites(t *testing.T) {
	dir := t.TempDir()
	h, err := app.Open(t.Context(), app.Options{Store: "badger:" + filepath.Join(dir, "live"), NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := h.Store.PutConnection(t.Context(), store.Connection{ID: "live"}); err != nil {
		t.Fatal(err)
	}
	w := &liveWriter{h: h, step: make(chan struct{})}
	run := store.Run{ID: liveRun, ConnectionID: "live", Status: "active", StartedAt: time.Now()}
	if w.lease, err = h.Store.Acquire(t.Context(), run, "host", "boot", time.Hour); err != nil {
		t.Fatal(err)
	}
	if w.v, err = vault.Open(h.DataDir); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 1; ; n++ {
			if err := w.write(t, n); err != nil {
				ended <- err
				return
			}
			select {
			case w.step <- struct{}{}:
			case <-stop:
				ended <- nil
				return
			default:
			}
		}
	}()
	last := 0
	for i := range 3 {
		select {
		case <-w.step: // between two backups there was something new
		case err := <-ended:
			t.Fatal(err)
		}
		before := w.done.Load()
		file := filepath.Join(dir, fmt.Sprint(i, ".tar"))
		made, err := h.Backup(t.Context(), host.NewBackup{Plain: true, Out: file})
		if err != nil {
			t.Fatal(err)
		}
		if after := w.done.Load(); after == before {
			t.Error("nothing was written while the backup was made")
		}
		if !made.Verified || made.Records < uint64(before) {
			t.Errorf("%+v, with %d records before", made, before)
		}
		restored := filepath.Join(dir, fmt.Sprint("restored", i))
		if _, err := app.Restore(t.Context(), "badger:"+restored, app.RestoreOptions{File: file}); err != nil {
			t.Fatal(err)
		}
		n := oneInstant(t, restored)
		if n < int(before) || n <= last {
			t.Errorf("backup %d has %d steps, %d were done when it began, the one before has %d", i, n, before, last)
		}
		last = n
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// oneInstant checks that everything in a restored directory is of one instant, and
// returns how many steps had been committed then.
func oneInstant(t *testing.T, dir string) int {
	t.Helper()
	h, err := app.Open(t.Context(), app.Options{Store: "badger:" + dir, NoSandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	stats, err := h.Store.Streams(t.Context(), "live")
	if err != nil || len(stats) != 1 {
		t.Fatalf("%v %v", stats, err)
	}
	records, events, documents := int(stats[0].Live), 0, 0
	for from := uint64(0); ; {
		page, err := h.Store.Events(t.Context(), liveRun, from, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			if e.Type == "run.batch_ingested" {
				events++
			}
			from = e.Sequence + 1
		}
		if len(page) == 0 {
			break
		}
	}
	for after := ""; ; {
		page, err := h.Store.Documents(t.Context(), store.DocumentQuery{Kind: store.Keys, After: after, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		documents, after = documents+len(page), page[len(page)-1].ID
	}
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := v.Sealed(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if events != records || documents != records && documents != records-1 ||
		len(secrets) != records && len(secrets) != records+1 ||
		len(secrets) == records+1 && documents == records-1 {
		t.Errorf("%d records, %d events, %d documents and %d secrets are of no instant", records, events,
			documents, len(secrets))
	}
	return records
}

// A drill takes time, in which things expire that are in the backup. The process that
// restores it sweeps none of them: it would compare another store than was copied.
func TestNothingExpiresUnpacking(t *testing.T) {
	opened, err := app.UnpackOpener.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := opened.(store.Store)
	doc := store.Write{Kind: store.Replies, ID: "over", Data: json.RawMessage(`{}`), ExpiresAt: time.Now().Add(-time.Hour)}
	if err := s.Write(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Document(t.Context(), store.Replies, "over"); err != nil {
		t.Errorf("it was swept: %v", err)
	}
}
