package jail

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A worker starts whichever descriptors its host has open: the numbers below that
// of the executable may all be in use, and one of them be handed to the worker.
func TestStartBesideTheExecutable(t *testing.T) {
	opened, err := openExecutable("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.close()
	const far = 500 // nobody has the numbers below it
	held, err := unix.FcntlInt(opened.file.Fd(), unix.F_DUPFD_CLOEXEC, far)
	if err != nil {
		t.Fatal(err)
	}
	e := &executable{file: os.NewFile(uintptr(held), "true"), path: fmt.Sprintf("/proc/self/fd/%d", held)}
	defer e.close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for below := 1; below <= 4; below++ {
		n := int(e.file.Fd()) - below
		if _, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
			t.Fatalf("the number %d is somebody's: %v", n, err)
		}
		if err := unix.Dup3(int(null.Fd()), n, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		near := os.NewFile(uintptr(n), os.DevNull)
		p, err := e.start(nil, nil, []*os.File{null, near, near, near}, 0)
		near.Close()
		if err != nil {
			t.Errorf("a file %d below the executable: %v", below, err)
			continue
		}
		if s, err := p.Wait(); err != nil || !s.Success() {
			t.Errorf("%v, %v", s, err)
		}
	}
}
