package loopdisk_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/tests/loopdisk"
)

// TestModel: a cut loses exactly what was not synced, again and again. Without this the
// power cuts of other tests would prove nothing.
func TestModel(t *testing.T) {
	if !loopdisk.Inside(t) {
		return
	}
	d := loopdisk.New(t)
	text := bytes.Repeat([]byte("kept? "), 20_000)
	path := func(name string) string { return filepath.Join(d.Dir, name) }
	for _, cut := range []string{"first", "second"} {
		for _, synced := range []bool{true, false} {
			name := cut + "-unsynced"
			if synced {
				name = cut + "-synced"
			}
			f, err := os.Create(path(name))
			if err == nil {
				_, err = f.Write(text)
			}
			if err == nil && synced {
				err = f.Sync()
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		if b, err := os.ReadFile(path(cut + "-unsynced")); err != nil || !bytes.Equal(b, text) {
			t.Fatalf("before the cut: %d bytes, %v", len(b), err)
		}
		d.Cut()
		if err := os.WriteFile(path("after"), text, 0o600); err == nil {
			t.Error("a file could be written after the cut")
		}
		d.Restart()
		if b, err := os.ReadFile(path(cut + "-synced")); err != nil || !bytes.Equal(b, text) {
			t.Errorf("%s cut: the synced file has %d bytes, %v", cut, len(b), err)
		}
		if b, err := os.ReadFile(path(cut + "-unsynced")); err == nil && len(b) != 0 {
			t.Errorf("%s cut: %d bytes of the unsynced file survived", cut, len(b))
		}
	}
	if b, err := os.ReadFile(path("first-synced")); err != nil || !bytes.Equal(b, text) {
		t.Errorf("after two cuts: %d bytes, %v", len(b), err)
	}
}
