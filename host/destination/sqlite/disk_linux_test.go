package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/sqlite"
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

// TestOpenOnAFullDisk: a file that is opened when there is no room left, as by a host that begins, says so.
func TestOpenOnAFullDisk(t *testing.T) {
	if !loopdisk.Inside(t) {
		return
	}
	d := loopdisk.New(t)
	url := "sqlite:" + filepath.Join(d.Dir, "out.db")
	open := func() error {
		s, err := sqlite.Kind{}.Open(t.Context(), url, destination.Owner{Host: "host-1", Destination: "d"})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	free := d.Fill()
	if err := open(); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("a full disk says: %v", err)
	}
	free()
	if err := open(); err != nil {
		t.Error(err)
	}
}
