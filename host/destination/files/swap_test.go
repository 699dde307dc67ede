package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
)

// A program that reads a table by a pattern, and knows of no manifest, sees one commit and never a row twice, while
// parts are rewritten and merged. Where folders cannot be exchanged, it may for a moment miss rows.
func TestReadByPattern(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.Format.Name()+"/exchanged", func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("SKIPPED: no exchange of folders on this system")
			}
			readByPattern(t, k, true)
		})
		t.Run(k.Format.Name()+"/file by file", func(t *testing.T) {
			files.SetHook(func(point string) error {
				if point == "exchange" {
					return errors.ErrUnsupported
				}
				return nil
			})
			defer files.Unhook()
			readByPattern(t, k, false)
		})
	}
}

func readByPattern(t *testing.T, k format, exchanged bool) {
	dir := filepath.Join(t.TempDir(), "out")
	sink, err := k.Open(t.Context(), k.Scheme()+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	s, want := growing(75)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	if _, err := s.play(ctx, sink, 1); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := s.play(ctx, sink, len(s.batches))
		ended <- err
	}()
	seen, again := map[int]bool{}, 0
	for done := false; !done; {
		select {
		case err := <-ended:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		got, newest, err := readOnce(t, k, dir)
		if errors.Is(err, fs.ErrNotExist) {
			again++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[newest] = true
		if exchanged && !maps.Equal(got, want[newest]) {
			t.Fatalf("after commit %d there are %d rows, not the %d of it", newest, len(got), len(want[newest]))
		}
	}
	t.Logf("saw %d of %d commits, was told %d times that a file is gone", len(seen), len(s.batches), again)
	if len(seen) < 3 {
		t.Errorf("the reader only saw %d commits", len(seen))
	}
}

// readOnce reads all files of the pattern, as soon as they are listed, and returns the number of the batch that each
// row is of.
func readOnce(t *testing.T, k format, dir string) (got map[string]int, newest int, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "mail_items", "*."+k.Format.Name()))
	if err != nil {
		return nil, 0, err
	}
	if len(paths) == 0 {
		return nil, 0, fs.ErrNotExist
	}
	got = map[string]int{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, 0, err
		}
		for _, row := range k.rows(t, text) {
			if _, twice := got[row["_key"]]; twice {
				return nil, 0, fmt.Errorf("%s is there twice", row["_key"])
			}
			n, err := strconv.Atoi(row["n"])
			if err != nil {
				return nil, 0, err
			}
			got[row["_key"]], newest = n, max(newest, n)
		}
	}
	return got, newest, nil
}

// growing makes batches of new and changed rows, whose sizes differ so that parts are merged, and what there is after
// each.
func growing(n int) (s *scenario, want []map[string]int) {
	r := rand.New(rand.NewPCG(7, 7)) // #nosec G404 -- a test
	s = &scenario{mode: destination.Current}
	shape, now, version := &destination.Shape{}, map[string]int{}, uint64(0)
	for i := range n {
		var batch []destination.Row
		fresh := []int{3, 300, 3, 40}[i%4]
		keys := map[string]bool{}
		for range fresh {
			keys[fmt.Sprint("key ", len(now)+len(keys))] = true
		}
		for range i % 3 {
			keys[fmt.Sprint("key ", r.IntN(max(1, len(now))))] = true
		}
		for key := range keys {
			version++
			row := destination.Row{Key: key, Version: version, At: time.UnixMicro(1_700_000_000_000_000 + int64(version)).UTC()} // #nosec G115
			row.Values, row.Rest = shape.Row(fmt.Appendf(nil, `{"n":%d}`, i), nil)
			batch, now[key] = append(batch, row), i
		}
		s.batches, s.shapes, want = append(s.batches, batch), append(s.shapes, shape.Clone()), append(want, maps.Clone(now))
	}
	return s, want
}
