package badger_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/loopdisk"
)

// cut lets a child ingest on the disk, stops it at some moment, cuts the power,
// and returns what it had acknowledged by then. The disk is whole again.
func cut(t *testing.T, c *campaign.Campaign, d *loopdisk.Disk, dir string, env ...string) map[store.ConnectionID]int {
	t.Helper()
	v := ingesting(t, dir, env...)
	<-v.open
	<-time.After(time.Duration(c.IntN(300_000)) * time.Microsecond)
	loopdisk.Stop(t, v.cmd.Process)
	d.Cut()
	acked := v.kill(t, false)
	d.Restart()
	return acked
}

// A power cut at any moment loses nothing that was
// acknowledged and leaves nothing half there.
func TestPowerCut(t *testing.T) {
	if !loopdisk.Inside(t) {
		return
	}
	c := campaign.New(t, "power cut, the store")
	d := loopdisk.New(t)
	dir := filepath.Join(d.Dir, "data")
	for range c.Length(3, 1) {
		survived(t, c, dir, cut(t, c, d, dir))
	}
}

// TestPowerCutUnsynced: without syncs the same cuts lose acknowledged commits, so
// the test above can fail; and the witness notices.
func TestPowerCutUnsynced(t *testing.T) {
	if !loopdisk.Inside(t) {
		return
	}
	c := campaign.New(t, "control: power cut without sync")
	d := loopdisk.New(t)
	const most = 8
	for i := range most {
		dir := filepath.Join(d.Dir, string('a'+rune(i)))
		acked := cut(t, c, d, dir, "SLUICE_UNSYNCED=1")
		c.Cycle()
		s, err := badger.Open(dir, crashOptions)
		if err != nil {
			t.Fatal(err)
		}
		damage := s.Damage()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("acknowledged %v: %v", acked, damage)
		if damage != nil && damage.Code == "store_truncated" {
			c.Refused()
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%d cuts of a store that does not sync lost nothing: the model proves nothing", most)
}
