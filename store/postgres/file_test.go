//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// staged makes a content of s that no record holds yet.
func staged(t *testing.T, s store.Store, content []byte) (store.StagedFile, store.File) {
	t.Helper()
	files, err := store.FilesOf(s)
	must(t, err)
	f, err := files.StageFile(t.Context(), "a")
	must(t, err)
	_, err = f.Write(content)
	must(t, err)
	d, n, err := f.Finish()
	must(t, err)
	return f, store.File{Digest: d, Size: n, MediaType: "text/plain"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds commits a record of a run that holds a file.
func holds(t *testing.T, s store.Store, l store.Lease, f store.StagedFile, held ...store.Held) error {
	t.Helper()
	b := &store.Batch{Stream: "s"}
	b.Append(store.Change{Key: []byte("k"), Data: []byte(`{"n":` + string(rune('0'+len(held))) + `}`), EmittedAt: 1})
	b.Hold(held)
	c := &store.Commit{Lease: l, Batches: []*store.Batch{b}}
	if f != nil {
		c.Files = []store.StagedFile{f}
	}
	r, err := s.Submit(t.Context(), c)
	must(t, err)
	_, err = r.Result()
	return err
}

// count waits until a query of one number says n: what nobody can reach is removed in the
// background.
func count(t *testing.T, c *pgx.Conn, n int, sql string) {
	t.Helper()
	got := -1
	for late := time.Now().Add(time.Minute); got != n && time.Now().Before(late); time.Sleep(5 * time.Millisecond) {
		must(t, c.QueryRow(t.Context(), sql).Scan(&got))
	}
	if got != n {
		t.Fatalf("%s: %d, want %d", sql, got, n)
	}
}

const pieces = "select count(*) from sluice_store.piece"

var long = bytes.Repeat([]byte("long"), 400_000)

// TestFileOrphans: no piece stays that no record can name: of a content that was discarded,
// of one that was kept already, of one that its last record let go, of one whose host died,
// of a connection that was erased.
func TestFileOrphans(t *testing.T) {
	url := server.New(t)
	s, admin := opened(t, url+weak, postgres.Options{}), connect(t, url)
	l := start(t, s, "a")
	x, f := staged(t, s, long)
	must(t, holds(t, s, l, x, store.Held{Field: "f", File: f}))
	y, _ := staged(t, s, long)
	count(t, admin, 8, pieces)
	y.Discard()
	count(t, admin, 4, pieces)
	again, _ := staged(t, s, long)
	must(t, holds(t, s, l, again, store.Held{Field: "f", File: f}, store.Held{Field: "g", File: f}))
	count(t, admin, 4, pieces)

	files, err := store.FilesOf(s)
	must(t, err)
	r, err := files.OpenFile(t.Context(), "a", f.Digest)
	must(t, err)
	_, _ = staged(t, s, long) // of a run that is killed
	run := store.Run{ID: l.RunID, ConnectionID: "a", Status: "failed"}
	b := &store.Batch{Stream: "s"}
	b.Append(store.Change{Op: store.Delete, Key: []byte("k"), EmittedAt: 2})
	receipt, err := s.Submit(t.Context(), &store.Commit{Lease: l, Batches: []*store.Batch{b}, Run: &run, End: true})
	must(t, err)
	_, err = receipt.Result()
	must(t, err)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, long) {
		t.Fatalf("%d bytes of a content that was erased while it was read: %v", len(got), err)
	}
	must(t, r.Close())
	count(t, admin, 4, pieces)
	must(t, s.Close())

	s = opened(t, url+weak, postgres.Options{})
	count(t, admin, 0, pieces)
	l, err = s.Acquire(t.Context(), store.Run{ID: "run_b", ConnectionID: "a", Status: "active"}, "host",
		"boot", time.Minute)
	must(t, err)
	x, f = staged(t, s, long)
	must(t, holds(t, s, l, x, store.Held{Field: "f", File: f}))
	run = store.Run{ID: l.RunID, ConnectionID: "a", Status: "failed"}
	receipt, err = s.Submit(t.Context(), &store.Commit{Lease: l, Run: &run, End: true})
	must(t, err)
	_, err = receipt.Result()
	must(t, err)
	must(t, s.DeleteConnection(t.Context(), "a", true))
	for _, table := range []string{"piece", "content", "file", "held", "heap"} {
		count(t, admin, 0, "select count(*) from sluice_store."+table)
	}
}

// TestFileNotTaken: what a commit brings that finds no room in the queue before its time is over, is gone.
func TestFileNotTaken(t *testing.T) {
	url := server.New(t)
	s, admin := opened(t, url+weak, postgres.Options{}), connect(t, url)
	l := start(t, s, "a")
	locked, err := admin.Begin(t.Context())
	must(t, err)
	_, err = locked.Exec(t.Context(), "select from sluice_store.lease for update")
	must(t, err)
	full := &store.Batch{Stream: "s"}
	full.Append(store.Change{Key: []byte("k"), Data: fmt.Appendf(nil, "%q", bytes.Repeat([]byte("x"), 9<<20)),
		EmittedAt: 1})
	first, err := s.Submit(t.Context(), &store.Commit{Lease: l, Batches: []*store.Batch{full}})
	must(t, err)
	x, f := staged(t, s, long)
	y, g := staged(t, s, []byte("short"))
	b := &store.Batch{Stream: "s"}
	b.Append(store.Change{Key: []byte("j"), Data: []byte(`{}`), EmittedAt: 1})
	b.Hold([]store.Held{{Field: "f", File: f}, {Field: "g", File: g}})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Submit(over,
		&store.Commit{Lease: l, Files: []store.StagedFile{x, y}, Batches: []*store.Batch{b}}); !errors.Is(err,
		context.Canceled) {
		t.Fatalf("a commit behind a full queue: %v", err)
	}
	must(t, locked.Rollback(t.Context()))
	_, err = first.Result()
	must(t, err)
	count(t, admin, 0, pieces)
	if n := y.Memory(); n != 0 {
		t.Errorf("a short file keeps %d bytes", n)
	}
}

// TestFileRead: a content that one host reads stays while another one erases it, until it was read
// or its reader's host is gone.
func TestFileRead(t *testing.T) {
	url := server.New(t)
	a, b, admin := opened(t, url+weak, postgres.Options{}), opened(t, url+weak, postgres.Options{}), connect(t, url)
	other := bytes.Repeat([]byte("other"), 400_000)
	for i, content := range [][]byte{long, other} {
		id := []string{"a", "b"}[i]
		l := start(t, b, id)
		x, f := staged(t, b, content)
		must(t, holds(t, b, l, x, store.Held{Field: "f", File: f}))
		run := store.Run{ID: l.RunID, ConnectionID: store.ConnectionID(id), Status: "failed"}
		receipt, err := b.Submit(t.Context(), &store.Commit{Lease: l, Run: &run, End: true})
		must(t, err)
		_, err = receipt.Result()
		must(t, err)
	}
	sum := sha256.Sum256(long)
	files, err := store.FilesOf(a)
	must(t, err)
	r, err := files.OpenFile(t.Context(), "a", store.DigestOf(sum[:]))
	must(t, err)
	first := make([]byte, 10)
	_, err = io.ReadFull(r, first)
	must(t, err)
	must(t, b.DeleteConnection(t.Context(), "a", true))
	must(t, b.DeleteConnection(t.Context(), "b", true))
	count(t, admin, 4, pieces) // what nobody reads is gone
	if _, err := files.OpenFile(t.Context(), "a", store.DigestOf(sum[:])); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a file that was erased is opened: %v", err)
	}
	if rest, err := io.ReadAll(r); err != nil || !bytes.Equal(append(first, rest...), long) {
		t.Fatalf("%d bytes of a content that another host erased while it was read: %v", len(rest), err)
	}
	must(t, r.Close())
	count(t, admin, 0, pieces)

	l := start(t, b, "c")
	x, f := staged(t, b, long)
	must(t, holds(t, b, l, x, store.Held{Field: "f", File: f}))
	_, err = files.OpenFile(t.Context(), "c", f.Digest)
	must(t, err)
	must(t, a.Close()) // and not the file
	run := store.Run{ID: l.RunID, ConnectionID: "c", Status: "failed"}
	receipt, err := b.Submit(t.Context(), &store.Commit{Lease: l, Run: &run, End: true})
	must(t, err)
	_, err = receipt.Result()
	must(t, err)
	must(t, b.DeleteConnection(t.Context(), "c", true))
	count(t, admin, 0, pieces)
	count(t, admin, 0, "select count(*) from sluice_store.reading")
}

// TestFileDamage: what the server changed is found before it is handed out, and by Verify.
func TestFileDamage(t *testing.T) {
	url := server.New(t)
	s, admin := opened(t, url+weak, postgres.Options{}), connect(t, url)
	x, f := staged(t, s, long)
	must(t, holds(t, s, start(t, s, "a"), x, store.Held{Field: "f", File: f}))
	must(t, s.Verify(t.Context()))
	run(t, admin, "update sluice_store.piece set data = set_bit(data, 77, 1 - get_bit(data, 77)) where n = 1")
	files, err := store.FilesOf(s)
	must(t, err)
	r, err := files.OpenFile(t.Context(), "a", f.Digest)
	must(t, err)
	defer r.Close()
	var damage *store.DamageError
	if got, err := io.ReadAll(r); !errors.As(err, &damage) || len(got) != 512<<10 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := s.Verify(t.Context()); !errors.As(err, &damage) {
		t.Errorf("verify: %v", err)
	}
}

// TestFileLost: pieces that a server lost before their commit refuse it.
func TestFileLost(t *testing.T) {
	url := server.New(t)
	s := opened(t, url+weak, postgres.Options{})
	l := start(t, s, "a")
	x, f := staged(t, s, long)
	run(t, connect(t, url), "delete from sluice_store.piece where n = 3")
	if err := holds(t, s, l, x, store.Held{Field: "f", File: f}); !errors.Is(err, postgres.ErrRolledBack) {
		t.Fatalf("a commit of a content with a gap: %v", err)
	}
	if files, err := store.FilesOf(s); err != nil {
		t.Fatal(err)
	} else if _, err := files.HasFile(t.Context(), "a", f.Digest); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("its content is there: %v", err)
	}
	must(t, s.Verify(t.Context()))
}
