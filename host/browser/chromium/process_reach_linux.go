package chromium

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// viewFlags of what is mounted in a view.
const viewFlags = unix.MS_NOSUID | unix.MS_NODEV

// aside runs do on a thread that belongs to it alone and ends with it. It is never
// the main thread, which cannot end.
func aside(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		go func() { // while this goroutine keeps the main thread
			defer close(done)
			aside(do)
		}()
		<-done
		return
	}
	do() // never unlocked: the thread ends with the goroutine
}

// view gives this thread, and what it starts, a file system of its own, in which the
// directories above some can be passed by everybody and have nothing else in them. It
// ends with the last process that has it, and the rest of the machine does not see it.
func view(hidden map[string][]string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	unix.Umask(0) // of this thread alone
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	for closed, dirs := range hidden {
		if err := cover(closed, dirs); err != nil {
			return fmt.Errorf("open a way through %s: %w", closed, err)
		}
	}
	return nil
}

// cover lays an empty directory over a closed one and brings some of what is below
// back to where it was.
func cover(closed string, dirs []string) error {
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	for _, dir := range dirs {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("open", err)
		}
		open = append(open, os.NewFile(uintptr(fd), dir)) // #nosec G115 -- a descriptor
	}
	if err := unix.Mount("sluice", closed, "tmpfs", viewFlags|unix.MS_NOEXEC, "mode=0711,size=64k,nr_inodes=256"); err != nil {
		return os.NewSyscallError("mount", err)
	}
	for i, dir := range dirs {
		if err := os.MkdirAll(dir, 0o711); err != nil { // #nosec G301 -- what this is for
			return err
		}
		from := fmt.Sprintf("/proc/thread-self/fd/%d", open[i].Fd())
		if err := unix.Mount(from, dir, "", unix.MS_BIND, ""); err != nil {
			return os.NewSyscallError("mount", err)
		}
	}
	return nil
}

// canView tries whether this process may make views.
func canView() error {
	tried := make(chan error, 1)
	go aside(func() { tried <- view(nil) })
	if err := <-tried; err != nil {
		return errors.Join(errors.New("this process may not mount over it"), err)
	}
	return nil
}
