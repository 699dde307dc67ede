package badger_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
	"github.com/sluicehost/sluice/store/storetest"
)

func open(t *testing.T, dir string) store.Store {
	t.Helper()
	s, err := badger.Open(dir, badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDisk(t *testing.T) {
	fewer(t, 8)
	dirs := map[store.Store]string{}
	storetest.Exercise(t, storetest.Driver{
		Open: func(t *testing.T) store.Store {
			dir := t.TempDir()
			s := open(t, dir)
			dirs[s] = dir
			return s
		},
		Reopen: func(t *testing.T, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, dirs[s])
			dirs[again] = dirs[s]
			return again
		},
		OpenFailing: failing,
	})
}

func TestMemory(t *testing.T) {
	fewer(t, 20)
	storetest.Exercise(t, storetest.Driver{
		Open: func(t *testing.T) store.Store {
			s, err := badger.OpenURL("memory:?memory=small", badger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		OpenFailing: failing,
	})
}

// fewer makes rapid draw n cases, unless its flag says how many or a campaign
// runs: a case on disk takes a hundred syncs.
func fewer(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue || campaigning() {
		return
	}
	if err := flag.Set(f.Name, strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flag.Set(f.Name, f.DefValue) })
}

// campaigning says that nothing is left out; make soak sets it.
func campaigning() bool { return os.Getenv("SLUICE_CYCLES") != "" }

// TestTinyIndex runs the suite with index runs of a dozen rows, and windows of
// forty records.
func TestTinyIndex(t *testing.T) {
	fewer(t, 30)
	storetest.Exercise(t, storetest.Driver{
		Open: func(t *testing.T) store.Store {
			s, err := badger.OpenMemory(badger.WithWindowBytes(badger.WithMemRows(badger.Options{Small: true}, 12), 2000))
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		OpenFailing: failing,
	})
}

func failing(t *testing.T, stream store.Stream, perStream bool) store.Store {
	t.Helper()
	s, err := badger.OpenMemory(badger.Options{FailState: stream, PerStream: perStream})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
