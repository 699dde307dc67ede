//go:build unix

package postgres_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	"github.com/sluicehost/sluice/store/storetest"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// weak is what the URLs of tests end with: their server does not sync.
const weak = "&durability=weak"

func TestStore(t *testing.T) {
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
