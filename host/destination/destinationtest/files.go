package destinationtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/store"
)

// A content is a file in memory.
type content struct{ *bytes.Reader }

func (content) Close() error { return nil }

// A torn content is shorter than it says.
type torn struct{ content }

func (c torn) Size() int64 { return c.content.Size() + 1 }

// file adds a content and returns the JSON with which a record names it.
func (s *source) file(text string) string {
	sum := sha256.Sum256([]byte(text))
	d := store.DigestOf(sum[:])
	s.files[d] = []byte(text)
	return fmt.Sprintf(`{"digest":%q,"size":%d,"media_type":"application/pdf","name":"../../x.html"}`, d, len(text))
}

func (s *source) open(_ context.Context, d store.Digest) (destination.Content, error) {
	b, ok := s.files[d]
	if !ok {
		return nil, fmt.Errorf("file: %w", store.ErrNotFound)
	}
	return content{bytes.NewReader(b)}, nil
}

// keptFiles tests that the contents that rows name are stored completely, once each and before the rows, that a failed
// transfer leaves nothing that looks complete, and that a missing content does not stop a batch.
func keptFiles(t *testing.T, p Place) {
	if p.File == nil {
		return
	}
	s, src := open(t, p), newSource()
	src.files = map[store.Digest][]byte{}
	long := string(bytes.Repeat([]byte("0123456789abcdef"), 100_000))
	src.put("a", `{"file":`+src.file("one")+`,"files":[`+src.file(long)+`,`+src.file("")+`,`+src.file("one")+`]}`)
	src.put("b", `{"file":{"digest":"sha256:`+string(bytes.Repeat([]byte("0"), 64))+`"},"files":[1,null]}`)
	src.put("c", `{"file":{"digest":"../../etc/passwd"},"other":`+src.file("of no field")+`}`)
	check := func(want int) {
		t.Helper()
		held := 0
		if err := src.bring(s, destination.Current); err != nil {
			t.Fatal(err)
		}
		for _, row := range p.Rows(t, "mail_items") {
			var list []map[string]any
			var one map[string]any
			_ = json.Unmarshal([]byte(row["file"]), &one) // whatever is not a file is ignored
			_ = json.Unmarshal([]byte(row["files"]), &list)
			for _, f := range append(list, one) {
				d, _ := f["digest"].(string)
				path, _ := f["path"].(string)
				want, ok := src.files[store.Digest(d)]
				if !ok {
					continue
				}
				held++
				if got := p.File(t, d, path); got == nil || !bytes.Equal(got, want) {
					t.Errorf("row %s: %d bytes at %q, want %d", row["_key"], len(got), path, len(want))
				}
			}
		}
		other := sha256.Sum256([]byte("of no field"))
		if p.File(t, string(store.DigestOf(other[:])), "") != nil {
			t.Error("a content that no field of files holds was kept")
		}
		if held != want {
			t.Errorf("rows hold %d files, want %d", held, want)
		}
	}
	check(4)
	src.put("b", `{"file":`+src.file("two")+`}`)
	src.drop("a")
	check(1)
	three := src.file("three")
	w := destination.File{Digest: store.Digest(three[11 : 11+71]), MediaType: "application/pdf",
		Open: func(context.Context) (destination.Content, error) {
			return torn{content{bytes.NewReader([]byte("thr"))}}, nil
		}}
	if err := s.(destination.FileKeeper).KeepFiles(t.Context(), []destination.File{w}); err == nil {
		t.Fatal("a content that broke off was kept")
	}
	w.Open = func(context.Context) (destination.Content, error) { return nil, errors.New("damaged") }
	if err := s.(destination.FileKeeper).KeepFiles(t.Context(), []destination.File{w}); err == nil {
		t.Fatal("a content that is damaged was kept")
	}
	if p.File(t, string(w.Digest), destination.FilePath(w)) != nil {
		t.Fatal("what broke off looks whole")
	}
	src.put("d", `{"file":`+three+`}`)
	check(2)
	again := open(t, p) // takes over
	src.put("e", `{"file":`+src.file("four")+`}`)
	if err := src.bring(s, destination.Current); !errors.Is(err, destination.ErrFenced) {
		t.Fatalf("another process feeds it: %v", err)
	}
	s = again
	check(3)
}

// FileIn returns a Place.File for a directory.
func FileIn(dir string) func(t *testing.T, digest, path string) []byte {
	return func(t *testing.T, digest, path string) []byte {
		t.Helper()
		if path == "" {
			path = destination.FilePath(destination.File{Digest: store.Digest(digest), MediaType: "application/pdf"})
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return b
	}
}
