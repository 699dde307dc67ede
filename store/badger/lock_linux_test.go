package badger_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/store/badger"
)

// A process that is being started has copies of all descriptors until it executes its program. A store that is
// closed meanwhile can be opened again.
func TestReopenedWhileAProcessStarts(t *testing.T) {
	dir := t.TempDir()
	s, err := badger.Open(dir, badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	copied := 0
	for _, f := range fds {
		link := filepath.Join("/proc/self/fd", f.Name())
		if to, err := os.Readlink(link); err != nil || to != dir && !strings.HasPrefix(to, dir+"/") {
			continue
		}
		n, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		fd, err := syscall.Dup(n)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		copied++
	}
	if copied == 0 {
		t.Fatal("the store has no files")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = badger.Open(dir, badger.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
