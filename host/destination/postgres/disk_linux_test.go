package postgres_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/tests/loopdisk"
	server "github.com/sluicehost/sluice/tests/postgres"
)

func TestFullDisk(t *testing.T) {
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
		s := server.Start(t, "fsync=off", "full_page_writes=off", "max_wal_size=64MB", "autovacuum=off")
		destinationtest.FullDisk(t, placeAt(s.Database(t)), d.Fill)
	})
}
