package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/tests/loopdisk"
)

func TestFullDisk(t *testing.T) {
	if !loopdisk.Inside(t) {
		return
	}
	d := loopdisk.New(t)
	t.Run("file", func(t *testing.T) { // ends before the disk does
		destinationtest.FullDisk(t, placeAt(filepath.Join(d.Dir, "out.db")), d.Fill)
	})
}
