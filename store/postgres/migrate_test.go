//go:build unix

package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/store/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// TestMigrationUnderLoad brings tables up to date while they are used: short transactions go on, each
// before or after a step; behind a long one the step gives up in time, and nothing is half done.
func TestMigrationUnderLoad(t *testing.T) {
	url := server.New(t)
	if err := postgres.MakeVersion(t.Context(), url+weak, 2); err != nil {
		t.Fatal(err)
	}
	admin, long := connect(t, url), connect(t, url)
	run(t, admin, "set search_path to sluice_store; insert into heap (connection) values ('a')")
	run(t, long, "begin; select * from sluice_store.heap")
	refused(t, url+weak+"&lock_timeout=100ms", "bring tables to version 3", "locked")
	var version string
	if err := admin.QueryRow(t.Context(), "select max(version)::text from sluice_schema").Scan(&version); err != nil ||
		version != "2" {
		t.Fatalf("version %s, %v", version, err)
	}
	run(t, admin, "insert into heap (connection) values ('b')") // nobody waits behind it any more
	run(t, long, "rollback")

	stop := make(chan struct{})
	began := make(chan struct{}, 4)
	var load sync.WaitGroup
	for range 4 {
		c := connect(t, url)
		load.Go(func() {
			for n := 0; ; n++ {
				if _, err := c.Exec(t.Context(),
					"update sluice_store.heap set erased = erased where connection = 'a'"); err != nil {
					t.Errorf("a transaction beside the migration: %v", err)
					return
				}
				if n == 0 {
					began <- struct{}{}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 4 {
		<-began
	}
	s, err := postgres.OpenURL(url+weak, postgres.Options{})
	close(stop)
	load.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := admin.QueryRow(t.Context(), "select max(version)::text from sluice_schema").Scan(&version); err != nil ||
		strings.Compare(version, "2") <= 0 {
		t.Fatalf("version %s, %v", version, err)
	}
}
