package badger_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// keepFiles stores two records, of which one holds a short file and one a long one.
func keepFiles(t *testing.T, s *badger.Store) (short, long store.File) {
	t.Helper()
	l := begin(t, s, "a")
	var staged []store.StagedFile
	var held []store.File
	for _, content := range [][]byte{[]byte("short"), bytes.Repeat([]byte("long"), 200_000)} {
		f, err := s.StageFile(t.Context(), "a")
		check(t, err)
		_, err = f.Write(content)
		check(t, err)
		d, n, err := f.Finish()
		check(t, err)
		staged, held = append(staged, f), append(held, store.File{Digest: d, Size: n, MediaType: "text/plain"})
	}
	b := new(store.Batch)
	for i, f := range held {
		b.Append(store.Change{Key: []byte{'k', byte('0' + i)}, Data: []byte(`{}`), EmittedAt: 1})
		b.Hold([]store.Held{{Field: "f", File: f}})
	}
	b.Stream = "s"
	r, err := s.Submit(t.Context(), &store.Commit{Lease: l, Files: staged, Batches: []*store.Batch{b}})
	check(t, err)
	_, err = r.Result()
	check(t, err)
	return held[0], held[1]
}

func begin(t *testing.T, s store.Store, c store.ConnectionID) store.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), store.Run{ID: "run_1", ConnectionID: c, Status: "active"}, "h", "b", 1<<40)
	check(t, err)
	return l
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func placed(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "files", "*"))
	check(t, err)
	return names
}

// TestFileDamage: a bit that flips on the disk is found before what is around it is handed
// out, by a read, by Verify and by an image.
func TestFileDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := badger.Open(dir, badger.Options{Small: true})
	check(t, err)
	defer s.Close()
	_, long := keepFiles(t, s)
	name := placed(t, dir)[0]
	b, err := os.ReadFile(name)
	check(t, err)
	b[300_000] ^= 4
	check(t, os.WriteFile(name, b, 0o600))
	r, err := s.OpenFile(t.Context(), "a", long.Digest)
	check(t, err)
	defer r.Close()
	got, err := io.ReadAll(r)
	var damage *store.DamageError
	if !errors.As(err, &damage) || len(got) != 262_144 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := s.Verify(t.Context()); !errors.As(err, &damage) {
		t.Errorf("verify: %v", err)
	}
	i, err := s.Image(t.Context())
	check(t, err)
	defer i.Close()
	if err := i.(store.Copier).Copy(t.Context(), io.Discard); !errors.As(err, &damage) {
		t.Errorf("image: %v", err)
	}
	check(t, os.Truncate(name, 100))
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.As(err, &damage) {
		t.Errorf("read of a short file: %v", err)
	}
}

// TestFileOrphans: what no commit took before a process ended goes when the store is opened
// again, and nothing else does.
func TestFileOrphans(t *testing.T) {
	dir := t.TempDir()
	s, err := badger.Open(dir, badger.Options{Small: true})
	check(t, err)
	_, long := keepFiles(t, s)
	f, err := s.StageFile(t.Context(), "a")
	check(t, err)
	_, err = f.Write(make([]byte, 1<<20))
	check(t, err)
	check(t, s.Close()) // as after a kill, nobody discards it
	if n := len(placed(t, dir)); n != 2 {
		t.Fatalf("%d files", n)
	}
	s, err = badger.Open(dir, badger.Options{Small: true})
	check(t, err)
	check(t, s.Close()) // waits for what is tidied
	if n := len(placed(t, dir)); n != 1 {
		t.Errorf("%d files are left", n)
	}
	s, err = badger.Open(dir, badger.Options{Small: true})
	check(t, err)
	defer s.Close()
	r, err := s.OpenFile(t.Context(), "a", long.Digest)
	check(t, err)
	check(t, r.Close())
}

// TestFileNotTaken: what a commit brings that waits for space, and is given up, is gone at once: on a full disk it
// counts most.
func TestFileNotTaken(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	dir := t.TempDir()
	s, err := badger.Open(dir,
		badger.Options{Small: true, FreeSpace: func(string) (uint64, error) { return free.Load(), nil }})
	check(t, err)
	defer s.Close()
	l := begin(t, s, "a")
	f, err := s.StageFile(t.Context(), "a")
	check(t, err)
	_, err = f.Write(make([]byte, 1<<20))
	check(t, err)
	d, n, err := f.Finish()
	check(t, err)
	free.Store(100 << 20)
	s.MeasureSpace()
	b := &store.Batch{Stream: "s"}
	b.Append(store.Change{Key: []byte("k"), Data: []byte(`{}`), EmittedAt: 1})
	b.Hold([]store.Held{{Field: "f", File: store.File{Digest: d, Size: n, MediaType: "text/plain"}}})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Submit(over,
		&store.Commit{Lease: l, Files: []store.StagedFile{f}, Batches: []*store.Batch{b}}); !errors.Is(err,
		store.ErrNoSpace) {
		t.Fatalf("records below store.free_ingest: %v", err)
	}
	if left := placed(t, dir); len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
}

// TestFileImage: an image and its items hold the files, a store that is loaded from either has them as long as its
// records do, and one that was changed on its way is none.
func TestFileImage(t *testing.T) {
	for name, form := range map[string]struct {
		write func(context.Context, io.Writer, store.Image) error
		load  func(context.Context, io.Reader, *badger.Store) error
	}{
		"image": {func(ctx context.Context, w io.Writer, i store.Image) error { return i.(store.Copier).Copy(ctx, w) },
			func(ctx context.Context, r io.Reader, s *badger.Store) error { return s.Load(ctx, r) }},
		"items": {store.WriteItems,
			func(ctx context.Context, r io.Reader, s *badger.Store) error { return store.LoadItems(ctx, r, s) }},
	} {
		t.Run(name, func(t *testing.T) { testFileImage(t, form.write, form.load) })
	}
}

func testFileImage(t *testing.T, write func(context.Context, io.Writer, store.Image) error,
	load func(context.Context, io.Reader, *badger.Store) error) {
	s, err := badger.Open(t.TempDir(), badger.Options{Small: true})
	check(t, err)
	defer s.Close()
	short, long := keepFiles(t, s)
	image := func(s *badger.Store) []byte {
		i, err := s.Image(t.Context())
		check(t, err)
		defer i.Close()
		var b bytes.Buffer
		check(t, write(t.Context(), &b, i))
		return b.Bytes()
	}
	all := image(s)
	other, err := badger.Open(t.TempDir(), badger.Options{Small: true})
	check(t, err)
	defer other.Close()
	check(t, load(t.Context(), bytes.NewReader(all), other))
	check(t, other.Verify(t.Context()))
	if !bytes.Equal(image(other), all) {
		t.Error("the image of a store that was loaded is another")
	}
	for _, f := range []store.File{short, long} {
		r, err := other.OpenFile(t.Context(), "a", f.Digest)
		check(t, err)
		got, err := io.ReadAll(r)
		check(t, errors.Join(err, r.Close()))
		if int64(len(got)) != f.Size {
			t.Errorf("%d bytes of %d", len(got), f.Size)
		}
	}
	leases, err := other.Leases(t.Context())
	check(t, err)
	b := &store.Batch{Stream: "s"}
	b.Append(store.Change{Key: []byte("k0"), Data: []byte(`{"new":1}`), EmittedAt: 2})
	r, err := other.Submit(t.Context(), &store.Commit{Lease: leases[0], Batches: []*store.Batch{b}})
	check(t, err)
	_, err = r.Result()
	check(t, err)
	check(t, other.Verify(t.Context()))
	if files, err := other.HeldFiles(t.Context(), store.FileQuery{Connection: "a"}); err != nil || len(files.Files) != 1 {
		t.Errorf("files once a record is replaced: %+v, %v", files.Files, err)
	}
	for _, piece := range []string{"longlong", "short"} {
		changed := bytes.Clone(all)
		changed[bytes.LastIndex(changed, []byte(piece))] ^= 1
		fresh, err := badger.OpenMemory(badger.Options{Small: true})
		check(t, err)
		var damage *store.DamageError
		if err := load(t.Context(), bytes.NewReader(changed), fresh); !errors.As(err, &damage) {
			t.Errorf("a changed %s: %v", piece, err)
		}
		check(t, fresh.Close())
	}
}
