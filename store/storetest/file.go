package storetest

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/sluicehost/sluice/store"
)

// files are the store's, which has them.
func (b *bench) files() store.Files {
	b.t.Helper()
	f, err := store.FilesOf(b.s)
	b.must(err)
	return f
}

// stage makes a content that no record holds yet.
func (b *bench) stage(c store.ConnectionID, content []byte) (store.StagedFile, store.File) {
	b.t.Helper()
	f, err := b.files().StageFile(b.t.Context(), c)
	b.must(err)
	for rest := content; len(rest) > 0; {
		n := min(len(rest), 50_000)
		_, err := f.Write(rest[:n])
		b.must(err)
		rest = rest[n:]
	}
	d, size, err := f.Finish()
	b.must(err)
	return f, store.File{Digest: d, Size: size, MediaType: "text/plain", Name: "a.txt"}
}

// holding is a batch of which each record holds one file.
func holding(s store.Stream, of map[string][]store.File, changes ...store.Change) *store.Batch {
	out := batch(s)
	for _, c := range changes {
		out.Append(c)
		var held []store.Held
		for _, f := range of[string(c.Key)] {
			held = append(held, store.Held{Field: "f", File: f})
		}
		out.Hold(held)
	}
	return out
}

// fileText reads a file of a connection, "" for one that is not there.
func (b *bench) fileText(c store.ConnectionID, f store.File) string {
	b.t.Helper()
	r, err := b.files().OpenFile(b.t.Context(), c, f.Digest)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	b.must(err)
	defer r.Close()
	all, err := io.ReadAll(r)
	b.must(err)
	equal(b.t, "size", r.Size(), int64(len(all)))
	return string(all)
}

func (b *bench) usage(c store.ConnectionID) store.FileUsage {
	b.t.Helper()
	u, err := b.files().FileUsage(b.t.Context(), c)
	b.must(err)
	return u
}

func exerciseFiles(t *testing.T, d Driver) {
	small, large := []byte("short"), bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	t.Run("a record and what it holds are one commit", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		for _, want := range [][]byte{small, large, {}} {
			x, f := b.stage("a", want)
			if got := b.fileText("a", f); got != "" {
				t.Fatal("a content that no record holds can be read")
			}
			b.put(&store.Commit{Lease: l, Files: []store.StagedFile{x}, Batches: []*store.Batch{
				holding("s", map[string][]store.File{"k": {f}}, up("k", `{"d":"`+string(f.Digest)+`"}`)),
			}})
			if got := b.fileText("a", f); got != string(want) {
				t.Fatalf("%d bytes became %d", len(want), len(got))
			}
			info, err := b.files().HasFile(t.Context(), "a", f.Digest)
			b.must(err)
			equal(t, "file", info, f)
			if _, err := b.files().HasFile(t.Context(), "b", f.Digest); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("another connection has it: %v", err)
			}
			b.verify()
			b.reopen()
			if got := b.fileText("a", f); got != string(want) {
				t.Fatalf("reopened: %d bytes became %d", len(want), len(got))
			}
		}
		b.end(l)
		equal(t, "usage", b.usage("a"), store.FileUsage{Files: 1})
	})
	t.Run("a content is kept once, and goes with the last record that holds it", func(t *testing.T) {
		for _, want := range [][]byte{small, large} {
			b := open(t, d)
			l := b.run("a")
			x, f := b.stage("a", want)
			y, again := b.stage("a", want)
			equal(t, "digest", again, f)
			of := map[string][]store.File{"k": {f}, "j": {f, f}}
			b.put(&store.Commit{Lease: l, Files: []store.StagedFile{x, y},
				Batches: []*store.Batch{holding("s", of, up("k", `{"n":1}`), up("j", `{"n":1}`))}})
			z, _ := b.stage("a", want)
			b.put(&store.Commit{Lease: l, Files: []store.StagedFile{z},
				Batches: []*store.Batch{holding("t", of, up("k", `{"n":1}`))}})
			equal(t, "usage", b.usage("a"), store.FileUsage{Files: 1, Bytes: uint64(len(want))})
			b.ingest(l, holding("s", nil, up("k", `{"n":2}`)), holding("t", nil, del("k")))
			equal(t, "kept", b.fileText("a", f) == string(want), true)
			b.verify()
			b.reopen()
			b.ingest(l, batch("s", del("j"))) // a batch that says nothing of files
			b.verify()
			b.end(l)
			equal(t, "left", b.fileText("a", f), "")
			equal(t, "usage", b.usage("a"), store.FileUsage{})
			b.verify()
		}
	})
	t.Run("what its last record let go may be named again until the run ends", func(t *testing.T) {
		for _, want := range [][]byte{small, large} {
			b := open(t, d)
			l := b.run("a")
			x, f := b.stage("a", want)
			of := map[string][]store.File{"k": {f}}
			b.put(&store.Commit{Lease: l, Files: []store.StagedFile{x},
				Batches: []*store.Batch{holding("s", of, up("k", `{"n":1}`))}})
			b.ingest(l, holding("s", nil, del("k")))
			b.ingest(l, holding("t", of, up("k", `{"n":2}`)))
			b.ingest(l, holding("t", nil, up("k", `{"n":3}`)))
			b.reopen()
			b.ingest(l, holding("u", of, up("k", `{"n":4}`)))
			b.end(l)
			equal(t, "kept", b.fileText("a", f) == string(want), true)
			equal(t, "usage", b.usage("a"), store.FileUsage{Files: 1, Bytes: uint64(len(want))})
			b.verify()
			l = b.run("a")
			b.ingest(l, holding("u", nil, del("k")))
			b.reopen()
			b.verify()
			b.end(l)
			equal(t, "left", b.fileText("a", f), "")
			equal(t, "usage", b.usage("a"), store.FileUsage{})
			b.verify()
		}
	})
	t.Run("what a record already held needs no content, and what is nowhere refuses the commit", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		x, f := b.stage("a", large)
		b.put(&store.Commit{Lease: l, Files: []store.StagedFile{x},
			Batches: []*store.Batch{holding("s", map[string][]store.File{"k": {f}}, up("k", `{"n":1}`))}})
		b.ingest(l, holding("s", map[string][]store.File{"k": {f}, "j": {f}}, up("k", `{"n":2}`),
			up("j", `{"n":1}`), del("k")))
		equal(t, "kept", b.fileText("a", f) == string(large), true)
		b.verify()
		other := b.run("b")
		r, err := b.s.Submit(t.Context(),
			&store.Commit{Lease: other,
				Batches: []*store.Batch{holding("s", map[string][]store.File{"k": {f}}, up("k", `{"n":1}`))}})
		b.must(err)
		var sink *store.SinkError
		if _, err := r.Result(); !errors.As(err, &sink) || sink.Code != "unknown_file" {
			t.Fatalf("a file of another connection: %v", err)
		}
		b.verify()
	})
	t.Run("what is discarded, or is of a commit that is refused, is gone", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		x, f := b.stage("a", large)
		x.Discard()
		y, _ := b.stage("a", large)
		bad := l
		bad.Fence += 7
		if _, err := b.commit(&store.Commit{Lease: bad, Files: []store.StagedFile{y},
			Batches: []*store.Batch{holding("s", map[string][]store.File{"k": {f}}, up("k", `{"n":1}`))}}); !errors.Is(err,
			store.ErrFenced) {
			t.Fatalf("fenced: %v", err)
		}
		equal(t, "content", b.fileText("a", f), "")
		b.verify()
	})
	t.Run("files are listed by record, in pages", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		x, f := b.stage("a", small)
		y, g := b.stage("a", large)
		of := map[string][]store.File{"1": {f}, "2": {f, g}, "3": {g}}
		b.put(&store.Commit{Lease: l, Files: []store.StagedFile{x, y}, Batches: []*store.Batch{
			holding("s", of, up("1", `{}`), up("2", `{}`), up("3", `{}`), up("4", `{}`)), holding("t", of, up("1", `{}`)),
		}})
		var got []string
		q := store.FileQuery{Connection: "a", Limit: 2}
		for pages := 0; ; pages++ {
			p, err := b.files().HeldFiles(t.Context(), q)
			b.must(err)
			for _, h := range p.Files {
				got = append(got, string(h.Stream)+h.Key+h.Field+string(h.Digest[:15]))
			}
			if q.After = p.After; !p.More {
				equal(t, "pages", pages, 1)
				break
			}
		}
		s, n := string(f.Digest[:15]), string(g.Digest[:15])
		equal(t, "files", got, []string{"s1f" + s, "s2f" + s, "s2f" + n, "s3f" + n, "t1f" + s})
		p, err := b.files().HeldFiles(t.Context(), store.FileQuery{Connection: "a", Stream: "s", Key: "2"})
		b.must(err)
		equal(t, "of one record", len(p.Files), 2)
		p, err = b.files().HeldFiles(t.Context(), store.FileQuery{Connection: "b"})
		b.must(err)
		equal(t, "of another connection", len(p.Files), 0)
		if _, err := b.files().HeldFiles(t.Context(), store.FileQuery{Connection: "b", After: q.After}); !errors.Is(err,
			store.ErrCursorExpired) {
			t.Fatalf("a cursor of another connection: %v", err)
		}
	})
	t.Run("ranges are read, and one that is erased is read to its end", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		x, f := b.stage("a", large)
		b.put(&store.Commit{Lease: l, Files: []store.StagedFile{x},
			Batches: []*store.Batch{holding("s", map[string][]store.File{"k": {f}}, up("k", `{}`))}})
		r, err := b.files().OpenFile(t.Context(), "a", f.Digest)
		b.must(err)
		defer r.Close()
		got := make([]byte, 300_000)
		for _, at := range []int64{1, 262_140, 262_144, 340_000} {
			_, err := r.Seek(at, io.SeekStart)
			b.must(err)
			_, err = io.ReadFull(r, got)
			b.must(err)
			equal(t, "range", bytes.Equal(got, large[at:at+300_000]), true)
		}
		b.ingest(l, batch("s", del("k")))
		b.end(l)
		_, err = r.Seek(0, io.SeekStart)
		b.must(err)
		all, err := io.ReadAll(r)
		b.must(err)
		equal(t, "after it was erased", bytes.Equal(all, large), true)
	})
	t.Run("files are erased with their connection, and no other's", func(t *testing.T) {
		b := open(t, d)
		for _, c := range []store.ConnectionID{"a", "ab"} {
			b.must(b.s.PutConnection(t.Context(), store.Connection{ID: c, ConnectorID: "x", CreatedAt: epoch, UpdatedAt: epoch}))
			l := b.run(c)
			x, f := b.stage(c, small)
			y, g := b.stage(c, large)
			b.put(&store.Commit{Lease: l, Files: []store.StagedFile{x, y},
				Batches: []*store.Batch{holding("s", map[string][]store.File{"k": {f, g}}, up("k", `{}`))}})
			b.end(l)
		}
		all := store.FileUsage{Files: 2, Bytes: uint64(len(small) + len(large))}
		b.must(b.s.DeleteConnection(t.Context(), "a", true))
		equal(t, "usage", b.usage("a"), store.FileUsage{})
		equal(t, "usage of the other", b.usage("ab"), all)
		p, err := b.files().HeldFiles(t.Context(), store.FileQuery{Connection: "a"})
		b.must(err)
		equal(t, "held", len(p.Files), 0)
		b.verify()
		b.reopen()
		equal(t, "usage of the other", b.usage("ab"), all)
		b.must(b.s.DeleteConnection(t.Context(), "ab", false))
		equal(t, "usage of one that is kept", b.usage("ab"), all)
	})
}
