//go:build unix

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/destination/files"
)

// TestHeldLock: a process that holds the directory, as a host that was stopped in the middle of a step, is told of, and
// not waited for without end.
func TestHeldLock(t *testing.T) {
	defer files.BusyAfter(100 * time.Millisecond)()
	dir := filepath.Join(t.TempDir(), "out")
	sink, err := files.JSONL.Open(t.Context(), "jsonl:"+dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	f, err := os.OpenFile(filepath.Join(dir, "_sluice_lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := sink.Describe(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "another process has locked") {
		t.Errorf("a step ends with %v", err)
	}
	if other, err := files.JSONL.Open(t.Context(), "jsonl:"+dir, owner); err == nil ||
		!strings.Contains(err.Error(), "another process has locked") {
		t.Errorf("opened once more: %v, %v", other, err)
	}
	if err := errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), sink.Describe(t.Context(), nil)); err != nil {
		t.Errorf("once it is free: %v", err)
	}
}
