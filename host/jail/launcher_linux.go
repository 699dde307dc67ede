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

// A namespaceSet is the set of new namespaces for a worker, as clone flags.
type namespaceSet uintptr

// namespaces lists the possible ones, in the order of names.
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

// ownUIDs reports whether workers can have the uids from first to last, and gid.
func ownUIDs(first, last, gid int) bool {
	return canChangeUID() && mapped("/proc/self/uid_map", first, last) && mapped("/proc/self/gid_map", gid, gid)
}

// mapped reports whether all ids from first to last exist. Root in an unprivileged container has only those that its
// user namespace maps.
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

// negotiate determines, by starting processes, which namespaces this host can make: all of them as root, otherwise all
// of them in a user namespace, otherwise as many as possible. It runs once, on the spawner's thread. Later failures are
// errors and never weaken the isolation silently.
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

// gather adds to base every namespace that can be made together with those added before.
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
	if set == base { // a user namespace alone protects nothing
		return 0, nil
	}
	return set, nil
}

// try starts and ends a worker in the set. It returns false if permission or kernel support is missing, and an error
// for anything else.
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

// An executable is a program that is held open, so that it stays the same.
type executable struct {
	file *os.File
	path string
}

// openExecutable opens the program at path, or the running one. The number of the descriptor is higher than those that
// a worker inherits.
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

// renumbered replaces the first file by a copy whose descriptor is above the executable's. Between fork and exec, Go
// moves descriptors to the numbers that follow the highest of files and overwrites what is there, which in a host with
// about sixty open descriptors would be the executable. done closes the copy.
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

// start starts the process. A user namespace maps the host's own ids to root, because any other uid would lose its
// capabilities at exec and could not set up the layers.
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

// socketBuffer is the size of the host's send buffer, so that the host does not wait for the worker in the middle of a
// piece of a body. The kernel doubles it for its own data and limits it to net.core.wmem_max.
const socketBuffer = 256 << 10

// socketPair makes the channel between host and worker. The host's end is non-blocking, the worker's end is blocking.
func socketPair() (host, worker *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	err = errors.Join(unix.SetNonblock(fds[0], true),
		unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer))
	if err != nil {
		closeFD(fds[0])
		closeFD(fds[1])
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "host"), nil
}
