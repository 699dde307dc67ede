package postgres_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	"github.com/sluicehost/sluice/tests/loopdisk"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// TestServersDiskFull fills the disk of a server: what was acknowledged stays, what waits is done once
// there is room, and both are there once.
func TestServersDiskFull(t *testing.T) {
	t.Parallel()
	if !loopdisk.Inside(t) {
		return
	}
	d := loopdisk.New(t)
	t.Run("server", func(t *testing.T) { // ends before the disk does
		if err := os.Chmod(d.Dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(d.Dir), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Setenv("TMPDIR", d.Dir) // of this process, which is for this test
		pg := server.Start(t, "fsync=off", "full_page_writes=off", "max_wal_size=64MB")
		s := opened(t, pg.Database(t)+weak, postgres.Options{})
		l := start(t, s, "a")
		receipts := []*store.Receipt{flush(t, s, l, 0)}
		if _, err := receipts[0].Result(); err != nil {
			t.Fatal(err)
		}
		free := d.Fill()
		for n := 1; store.Stalled(s) == nil; n++ { // what is allocated already takes some
			receipts = append(receipts, flush(t, s, l, n))
			select {
			case <-receipts[n].Done():
				if _, err := receipts[n].Result(); err != nil && !errors.Is(err, store.ErrNoSpace) {
					t.Fatal(err)
				}
			case <-time.After(100 * time.Millisecond):
			}
			if n > 20_000 {
				t.Fatal("the disk does not get full")
			}
		}
		free()
		all(t, s, l, receipts)
	})
}
