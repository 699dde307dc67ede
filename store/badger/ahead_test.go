package badger_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// mixed writes records in no order of their keys, some of them twice.
func mixed(t *testing.T, s *badger.Store, run string, records int) {
	t.Helper()
	w := newWriter(t, s, run)
	for part := range 4 {
		if _, err := w.commit(func(b *store.Batch) {
			for i := range records / 4 {
				n := (part*records/4 + i) * 7919 % records
				b.Append(store.Change{Key: fmt.Appendf(nil, "key-%05d", n/2*2), EmittedAt: int64(n), Data: fmt.Appendf(nil, `{"run":%q,"n":%d}`, run, n)})
			}
		}).Result(); err != nil {
			t.Fatal(err)
		}
	}
	end(t, s, w.lease)
}

// listed is a stream in one order, checked against its listing by version.
func listed(t *testing.T, s *badger.Store, by store.Order) {
	t.Helper()
	all := func(by store.Order) (out []string) {
		q := store.RecordQuery{Connection: "c", Stream: "s", Order: by, Limit: 1000}
		for {
			page, err := s.Records(t.Context(), q)
			if err != nil {
				t.Fatal(by, err)
			}
			for _, r := range page.Records {
				line := r.Key
				if by != store.ByKey {
					line = fmt.Sprintf("%020d %s", r.EmittedAt.UnixMicro(), r.Key)
				}
				out = append(out, line)
			}
			if q.After, q.AfterKey = page.After, page.AfterKey; !page.More {
				return out
			}
		}
	}
	got, want := all(by), all(store.ByVersion)
	if by == store.ByKey {
		for i, line := range want {
			_, want[i], _ = strings.Cut(line, " ")
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%d records by %s, %d by version, or in another order", len(got), by, len(want))
	}
}

var bothOrders = []store.Order{store.ByKey, store.ByEmitted}

func reopen(t *testing.T, s *badger.Store, dir string, o badger.Options) *badger.Store {
	t.Helper()
	if s != nil {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := badger.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// What was worked out is there after a restart, and goes on with what was written
// since.
func TestOrdersKept(t *testing.T) {
	dir, o := t.TempDir(), badger.WithOrderBytes(crashOptions, 1<<10)
	s := reopen(t, nil, dir, o)
	mixed(t, s, "run_1", 800)
	for i := range 3 {
		for _, by := range bothOrders {
			listed(t, s, by)
			if through, past := s.TakenIn("c", "s", by); through == 0 || past != (i > 0) {
				t.Fatalf("restart %d, %s: through %d, of the past: %v", i, by, through, past)
			}
		}
		mixed(t, s, fmt.Sprint("run_more", i), 800)
		s = reopen(t, s, dir, o)
	}
}

// A file that was cut or changed, as a kill, a power cut or a bad disk leaves it,
// costs the time to work the order out again, and nothing else.
func TestOrdersBroken(t *testing.T) {
	dir, o := t.TempDir(), badger.WithOrderBytes(crashOptions, 1<<10)
	s := reopen(t, nil, dir, o)
	mixed(t, s, "run_1", 800)
	for i := range 40 {
		for _, by := range bothOrders {
			listed(t, s, by)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "db", "orders", "*.order"))
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if at := rand.IntN(len(b)); i%2 == 0 {
				b[at] ^= 1 << rand.IntN(8)
			} else {
				b = b[:at]
			}
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s = reopen(t, nil, dir, o)
	}
}

// A stream that got many records has its orders worked out before anybody asks.
func TestOrdersAhead(t *testing.T) {
	s := reopen(t, nil, t.TempDir(), badger.WithAhead(crashOptions, 500, 10*time.Millisecond))
	mixed(t, s, "run_1", 800)
	page, err := s.Records(t.Context(), store.RecordQuery{Connection: "c", Stream: "s", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range bothOrders {
		for late := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			through, _ := s.TakenIn("c", "s", by)
			if through == page.Version {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("the order by %s has come to %d of %d", by, through, page.Version)
			}
		}
	}
}

// Orders hold keys, so they go with their stream, also when the process that
// erased it was killed in between.
func TestOrdersErased(t *testing.T) {
	dir, o := t.TempDir(), badger.WithOrderBytes(crashOptions, 1<<10)
	s := reopen(t, nil, dir, o)
	mixed(t, s, "run_1", 800)
	for _, by := range bothOrders {
		listed(t, s, by)
	}
	left := func() []string {
		files, err := filepath.Glob(filepath.Join(dir, "db", "orders", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	files := left()
	if len(files) != 2 {
		t.Fatal(files)
	}
	kept, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteConnection(t.Context(), "c", true); err != nil {
		t.Fatal(err)
	}
	if files := left(); len(files) > 0 {
		t.Fatalf("%v are left of a stream that was erased", files)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], kept, 0o600); err != nil {
		t.Fatal(err)
	}
	reopen(t, nil, dir, o)
	for late := time.Now().Add(2 * time.Minute); len(left()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the file of a stream that is no more is still there")
		}
	}
}
