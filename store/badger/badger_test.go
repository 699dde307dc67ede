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

func TestDisk(t *testing.T) {
	fewer(t, 8)
	storetest.Exercise(t, storetest.Driver{
		Open: func(t *testing.T, dir string) store.Store {
			return opened(t)(badger.Open(dir, badger.Options{Small: true}))
		},
		OpenFailing: failing,
	})
}

// TestMemory runs the suite with index runs of a dozen rows, and windows of forty
// records.
func TestMemory(t *testing.T) {
	fewer(t, 30)
	tiny := badger.WithWindowBytes(badger.WithMemRows(badger.Options{Small: true}, 12), 2000)
	storetest.Exercise(t, storetest.Driver{
		Open:    func(t *testing.T, _ string) store.Store { return opened(t)(badger.OpenMemory(tiny)) },
		Forgets: true, OpenFailing: failing,
	})
}

func failing(t *testing.T, stream store.Stream, perStream bool) store.Store {
	return opened(t)(badger.OpenMemory(badger.Options{FailState: stream, PerStream: perStream}))
}

func opened(t *testing.T) func(s *badger.Store, err error) store.Store {
	return func(s *badger.Store, err error) store.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
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
