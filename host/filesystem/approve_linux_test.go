package filesystem_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/host/filesystem"
)

// The data directory under another name is the data directory.
func TestApproveKnowsTheDataDirectoryMountedElsewhere(t *testing.T) {
	base := t.TempDir()
	must(t, os.MkdirAll(base+"/data/db", 0o755))
	must(t, os.Mkdir(base+"/bind", 0o755))
	if err := syscall.Mount(base+"/data", base+"/bind", "", syscall.MS_BIND, ""); errors.Is(err, syscall.EPERM) {
		t.Skip("mounting needs privileges")
	} else if err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(base+"/bind", 0)
	for _, path := range []string{base + "/bind", base + "/bind/db"} {
		if _, err := filesystem.Approve(path, false, base+"/data"); !errors.Is(err, filesystem.ErrRefused) {
			t.Errorf("%s: got %v, want ErrRefused", path, err)
		}
	}
}
