//go:build unix

package postgres_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	"github.com/sluicehost/sluice/store/storetest"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// weak is what the URLs of tests end with: their server does not sync.
const weak = "&durability=weak"

func TestStore(t *testing.T) {
	fewer(t, 4)
	storetest.Exercise(t, storetest.Driver{
		Open: func(t *testing.T, dir string) store.Store { return open(t, databaseOf(t, dir)) },
		OpenFailing: func(t *testing.T, stream store.Stream, perStream bool) store.Store {
			url := server.New(t) + weak + "&fail_state=" + string(stream)
			if perStream {
				url += "&per_stream=true"
			}
			return open(t, url)
		},
	})
}

// databaseOf is the URL of a schema of its own for a directory of the suite.
func databaseOf(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(dir))
	return shared(t) + weak + "&schema=s_" + hex.EncodeToString(sum[:8])
}

var database string

func shared(t *testing.T) string {
	t.Helper()
	if database == "" {
		database = server.New(t)
	}
	return database
}

func open(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := postgres.OpenURL(url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fewer makes rapid draw n cases, unless its flag says how many or a campaign runs: a case
// opens its database again and again.
func fewer(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f == nil || f.Value.String() != f.DefValue || os.Getenv("SLUICE_CYCLES") != "" {
		return
	}
	if err := flag.Set(f.Name, strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(f.Name, f.DefValue) })
}
