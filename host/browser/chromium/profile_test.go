package chromium_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// A browser whose directories lie in one that only root passes, as /root is, gets
// them, and sees nothing else of it.
func TestReach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only browsers of a root host have uids of their own")
	}
	o := options(t)
	closed := filepath.Dir(o.Profile)
	if err := os.WriteFile(filepath.Join(closed, "letter"), []byte("private"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := chromium.Reach(o.Profile); err != nil {
		t.Fatal(err)
	}
	b := started(t, o)
	inside := filepath.Join("/proc", strconv.Itoa(b.PID()), "root", closed)
	entries, err := os.ReadDir(inside)
	if err != nil || len(entries) != 2 {
		t.Errorf("the browser sees %v, %v; want its profile and home", entries, err)
	}
	if fi, err := os.Stat(filepath.Join(o.Profile, "Local State")); err != nil || fi.Size() == 0 {
		t.Errorf("the profile was not written where it belongs: %v", err)
	}
	if fi, err := os.Stat(closed); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the closed directory: %v, %v", fi.Mode(), err)
	}
}
