//go:build unix

package fleet_test

import (
	"os"
	"syscall"
	"testing"
)

func checkOwner(t *testing.T, path string, uid int) {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := fi.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && int(st.Uid) != uid || fi.Mode().Perm() != 0o700 {
		t.Errorf("%s is of uid %d, %v", path, st.Uid, fi.Mode())
	}
}
