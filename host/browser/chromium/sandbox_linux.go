package chromium

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inspect examines the renderers of a browser from outside; the worst one counts. It reports false
// if there is none whose filter is in place: a new renderer installs it before it runs anything of
// a page.
func inspect(browser int) (worst sandbox, found bool) {
	for _, p := range below(processes(), browser) {
		if p.zombie || !p.says("--type=renderer") {
			continue
		}
		s := renderer(p.pid, browser)
		if !found {
			worst, found = s, true
			continue
		}
		worst = sandbox{worse(worst.User, s.User), worse(worst.Network, s.Network), worse(worst.PID, s.PID),
			worse(worst.Seccomp, s.Seccomp)}
	}
	return worst, found
}

func worse(a, b wallState) wallState {
	switch {
	case a == wallMissing || b == wallMissing:
		return wallMissing
	case a == wallUnknown || b == wallUnknown:
		return wallUnknown
	}
	return wallStands
}

// renderer returns the isolation of one process from its browser. Namespaces are compared by their
// links, which only a privileged host may read; user and pid namespaces are visible in other ways
// too.
func renderer(pid, browser int) sandbox {
	dir, whole := "/proc/"+strconv.Itoa(pid), "/proc/"+strconv.Itoa(browser)
	s := sandbox{User: apart(dir, whole, "user"), Network: apart(dir, whole, "net"), PID: apart(dir, whole, "pid"),
		Seccomp: wallMissing}
	if s.User == wallUnknown {
		s.User = mapped(dir, whole)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return s
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "Seccomp:" && fields[1] == "2":
			s.Seccomp = wallStands
		case fields[0] == "NSpid:" && s.PID == wallUnknown && len(fields) > 2:
			s.PID = wallStands
		}
	}
	return s
}

// apart compares a namespace with the browser's.
func apart(dir, whole, name string) wallState {
	theirs, err := os.Readlink(dir + "/ns/" + name)
	if err != nil {
		return wallUnknown
	}
	ours, err := os.Readlink(whole + "/ns/" + name)
	switch {
	case err != nil:
		return wallUnknown
	case theirs == ours:
		return wallMissing
	}
	return wallStands
}

// mapped recognises a user namespace by its uid map.
func mapped(dir, whole string) wallState {
	theirs, err := os.ReadFile(dir + "/uid_map")
	if err != nil {
		return wallUnknown
	}
	ours, err := os.ReadFile(whole + "/uid_map")
	switch {
	case err != nil:
		return wallUnknown
	case string(theirs) == string(ours):
		return wallMissing
	}
	return wallStands
}

// viewFlags are the flags of mounts in a view.
const viewFlags = unix.MS_NOSUID | unix.MS_NODEV

// onOwnThread runs do on a thread that ends with it. It is never the main thread, which cannot end.
func onOwnThread(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		go func() { // while this goroutine occupies the main thread
			defer close(done)
			onOwnThread(do)
		}()
		<-done
		return
	}
	do() // never unlocked, so the thread ends with the goroutine
}

// view gives this thread, and what it starts, a mount view in which closed directories can be
// passed but contain only the given directories. It ends with its last process and is invisible to
// the rest of the machine.
func view(hidden map[string][]string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	unix.Umask(0) // of this thread only
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

// cover mounts an empty directory over a closed one and brings the given directories below it back
// to their places.
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
	if err := unix.Mount("sluice", closed, "tmpfs", viewFlags|unix.MS_NOEXEC,
		"mode=0711,size=64k,nr_inodes=256"); err != nil {
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

// canView tries to make a view.
func canView() error {
	if err := elsewhere(func() error { return view(nil) }); err != nil {
		return errors.Join(errors.New("this process may not mount over it"), err)
	}
	return nil
}
