package crash

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of orphans below it, so that it learns which
// processes outlive a host.
func adopt(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
			t.Error(err)
		}
	})
}

// orphansGone waits until no child is left and returns how many there were. A
// child that is still there after ten seconds fails the test.
func orphansGone(t *testing.T) int {
	t.Helper()
	n := 0
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			_, err := syscall.Wait4(-1, nil, 0, nil)
			switch {
			case errors.Is(err, syscall.ECHILD):
				return
			case err == nil:
				n++
			}
		}
	}()
	select {
	case <-gone:
	case <-time.After(2 * time.Minute):
		t.Fatal("a worker outlives its host")
	}
	return n
}
