//go:build linux

package jail_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sluicehost/sluice/host/jail"
)

// The module's bytes cannot be changed through any descriptor.
func TestMemFDIsSealed(t *testing.T) {
	f, err := jail.MemFD("module", []byte("bytes"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, []byte("bytes")) {
		t.Errorf("read %q %v", got, err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EPERM) {
		t.Errorf("write: %v", err)
	}
	for _, size := range []int64{0, 1 << 20} {
		if err := f.Truncate(size); !errors.Is(err, syscall.EPERM) {
			t.Errorf("resize to %d: %v", size, err)
		}
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE); !errors.Is(err, syscall.EPERM) {
		t.Errorf("add a seal: %v", err)
	}
}

func pair(t *testing.T) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// Descriptors arrive with the first byte, closed on exec, and are the same file.
func TestFilesCrossTheSocket(t *testing.T) {
	a, b := pair(t)
	f, err := jail.MemFD("module", []byte("bytes"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := jail.SendFDs(a, []byte("hello"), f, f); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	n, files, err := jail.ReceiveFDs(b, data)
	if err != nil || string(data[:n]) != "hello" || len(files) != 2 {
		t.Fatalf("received %q, %d files, %v", data[:n], len(files), err)
	}
	for _, got := range files {
		defer got.Close()
		if !sameFile(t, f, got) {
			t.Error("another file arrived")
		}
		if flags, err := unix.FcntlInt(got.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %d %v", flags, err)
		}
	}
	_ = a.Close()
	if _, _, err := jail.ReceiveFDs(b, data); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func sameFile(t *testing.T, a, b *os.File) bool {
	t.Helper()
	x, err := a.Stat()
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}

// More descriptors than expected are refused, and none of them stays open.
func TestTooManyFiles(t *testing.T) {
	a, b := pair(t)
	five := []int{int(a.Fd()), int(a.Fd()), int(a.Fd()), int(a.Fd()), int(a.Fd())}
	if err := unix.Sendmsg(five[0], []byte("x"), unix.UnixRights(five...), nil, 0); err != nil {
		t.Fatal(err)
	}
	before := countDescriptors(t)
	if _, files, err := jail.ReceiveFDs(b, make([]byte, 8)); err == nil || len(files) > 0 {
		t.Errorf("received %d files, %v", len(files), err)
	}
	if after := countDescriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if err := jail.SendFDs(a, []byte("x"), a, a, a, a, a); err == nil {
		t.Error("sent five files")
	}
	if err := jail.SendFDs(a, nil, a); err == nil {
		t.Error("sent a file without a byte")
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
