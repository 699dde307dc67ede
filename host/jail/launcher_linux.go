package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceSet is what a worker is cloned into, as clone flags.
type namespaceSet uintptr

// namespaces are the fresh ones a worker gets, in the order of names.
var namespaces = []struct {
	flag namespaceSet
	name string
}{
	{unix.CLONE_NEWUSER, NamespaceUser},
	{unix.CLONE_NEWNET, NamespaceNetwork},
	{unix.CLONE_NEWNS, NamespaceMount},
	{unix.CLONE_NEWPID, NamespacePID},
	{unix.CLONE_NEWIPC, NamespaceIPC},
	{unix.CLONE_NEWUTS, NamespaceUTS},
}

const everyNamespace = namespaceSet(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS)

func (s namespaceSet) names() []string {
	names := []string{}
	for _, n := range namespaces {
		if s&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// canChangeUID reports whether this host is root.
func canChangeUID() bool { return os.Geteuid() == 0 }

// ownUIDs reports whether workers can have uids from first to last, and gid.
func ownUIDs(first, last, gid int) bool {
	return canChangeUID() && mapped("/proc/self/uid_map", first, last) && mapped("/proc/self/gid_map", gid, gid)
}

// mapped reports whether all ids from first to last exist here: root of a
// container without privileges has only those that its user namespace maps.
func mapped(table string, first, last int) bool {
	text, err := os.ReadFile(table)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil && inside <= first && last-inside < n {
			return true
		}
	}
	return false
}

// negotiate finds out, by starting processes, which namespaces this host may
// make: all of them as root, else all of them in a user namespace, else as many
// as there are. It runs once, on the spawner's thread; after that a refusal is an
// error and never a quiet step down.
func (l *Launcher) negotiate() (namespaceSet, error) {
	if l.options.Walls.resolved().NoNamespaces {
		return 0, nil
	}
	bases := []namespaceSet{unix.CLONE_NEWUSER}
	if canChangeUID() {
		bases = []namespaceSet{0, unix.CLONE_NEWUSER}
	}
	for _, base := range bases {
		if ok, err := l.try(base | everyNamespace); ok || err != nil {
			return base | everyNamespace, err
		}
	}
	best := namespaceSet(0)
	for _, base := range bases {
		set, err := l.gather(base)
		if err != nil {
			return 0, err
		}
		if len(set.names()) > len(best.names()) {
			best = set
		}
	}
	return best, nil
}

// gather adds to base every namespace that can be made together with the ones before it.
func (l *Launcher) gather(base namespaceSet) (namespaceSet, error) {
	set := base
	for _, n := range namespaces {
		if set&n.flag != 0 {
			continue
		}
		ok, err := l.try(set | n.flag)
		if err != nil {
			return 0, err
		}
		if ok {
			set |= n.flag
		}
	}
	if set == base { // a user namespace alone shuts nothing out
		return 0, nil
	}
	return set, nil
}

// try starts a worker in the set and ends it. Lack of permission or of kernel
// support is false, anything else an error.
func (l *Launcher) try(set namespaceSet) (bool, error) {
	p, err := l.begin(nil, Identity{UID: -1, GID: -1}, set)
	for _, refusal := range []error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.EUSERS, unix.ENOSYS} {
		if errors.Is(err, refusal) {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	return true, p.Close()
}

// executable is a program held open, so that it stays the same program.
type executable struct {
	file *os.File
	path string
}

// openExecutable opens the program at path, or the running one. The descriptor's
// number is out of the way of those a worker inherits.
func openExecutable(path string) (*executable, error) {
	if path == "" {
		path = "/proc/self/exe"
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer closeFD(fd)
	const aside = 64
	held, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, aside)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &executable{
		file: os.NewFile(uintptr(held), filepath.Base(path)),
		path: "/proc/self/fd/" + strconv.Itoa(held),
	}, nil
}

func (e *executable) close() error { return e.file.Close() }

// renumbered gives one of the files a number above the executable's. Between fork
// and exec Go moves descriptors to the numbers that follow the highest of files,
// whatever was there: in a host that has some sixty descriptors open that would be
// the executable. done closes the copy.
func (e *executable) renumbered(files []*os.File) (moved []*os.File, done func(), err error) {
	if len(files) == 0 {
		return files, func() {}, nil
	}
	fd, err := unix.FcntlInt(files[0].Fd(), unix.F_DUPFD_CLOEXEC, int(e.file.Fd())+1)
	if err != nil {
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	copied := os.NewFile(uintptr(fd), files[0].Name())
	return append([]*os.File{copied}, files[1:]...), func() { _ = copied.Close() }, nil
}

// start makes the process. A user namespace maps the host's own ids to root,
// because another uid would lose its capabilities at the exec and with them the
// right to build walls.
func (e *executable) start(args, env []string, files []*os.File, set namespaceSet) (*os.Process, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true, Cloneflags: uintptr(set)}
	if set&unix.CLONE_NEWUSER != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	files, done, err := e.renumbered(files)
	if err != nil {
		return nil, err
	}
	defer done()
	if set&unix.CLONE_NEWUSER != 0 {
		hide, err := reveal()
		if err != nil {
			return nil, err
		}
		defer func() { _ = hide() }() // it was permitted before
	}
	argv := append([]string{"sluice"}, args...)
	process, err := os.StartProcess(e.path, argv, &os.ProcAttr{Env: env, Files: files, Dir: "/", Sys: attr})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", e.file.Name(), err)
	}
	return process, nil
}

const (
	noSignal    = unix.MSG_NOSIGNAL
	closeOnExec = unix.MSG_CMSG_CLOEXEC
)

func duplicateTo(from, to int) error { return unix.Dup3(from, to, unix.O_CLOEXEC) }

// socketBuffer holds what the host sends at once, so that it does not wait for the
// worker in the middle of a piece of a body: 256 KiB. The kernel doubles it for its
// own needs, and takes less where net.core.wmem_max is less.
const socketBuffer = 256 << 10

// socketPair makes the channel between host and worker: the host's end does not block a thread,
// the worker's end blocks.
func socketPair() (host, worker *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	err = errors.Join(unix.SetNonblock(fds[0], true), unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer))
	if err != nil {
		closeFD(fds[0])
		closeFD(fds[1])
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "host"), nil
}
