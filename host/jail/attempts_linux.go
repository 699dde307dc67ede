package jail

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An escape is a way out of a worker. try returns nil if the attempt succeeded; it may also kill the process. shut
// reports whether the given isolation must prevent it even without strict seccomp, which prevents all but
// countedByLimits.
type escape struct {
	name string
	try  func(targets) error
	shut func(Isolation) bool
}

// ways lists all attempts.
var ways = []escape{
	{"open_passwd", func(targets) error { return tryOpen("/etc/passwd") }, filesShut},
	{"open_data_directory", func(t targets) error { return tryOpen(t.DataDir) }, filesShut},
	{"open_host_proc", tryHostProc, filesShut},
	{"create_file", tryCreate, filesShut},
	{"tcp", tryTCP, func(i Isolation) bool { return i.has(NamespaceNetwork) || i.Landlock >= abiTCP }},
	{"udp", tryUDP, func(i Isolation) bool { return i.has(NamespaceNetwork) || i.Landlock >= abiUDP }},
	{"unix_socket", tryUnix, func(i Isolation) bool { return i.has(NamespaceNetwork) || i.Landlock >= abiScopes }},
	{"raw_socket", tryRaw, func(i Isolation) bool { return i.UID == UIDOwn }},
	{"exec", tryExec, filesShut},
	{"exec_memory_file", tryExecMemory, never},
	{"fork", tryFork, never},
	{"ptrace_host", tryTrace, func(i Isolation) bool { return i.has(NamespacePID) || i.Landlock > 0 }},
	{"signal_host", trySignal,
		func(i Isolation) bool { return i.has(NamespacePID) || i.UID == UIDOwn || i.Landlock >= abiScopes }},
	{"signal_by_descriptor", tryOwner, func(i Isolation) bool { return i.has(NamespacePID) }},
	{"host_clock", tryClock, func(i Isolation) bool { return i.has(NamespacePID) }},
	{"mount", tryMount, func(i Isolation) bool { return i.UID == UIDOwn || i.Landlock > 0 }},
	{"regain_capabilities", tryCapabilities, func(i Isolation) bool { return i.UID == UIDOwn }},
	{"map_executable", tryMapExecutable, never},
	{"make_executable", tryMakeExecutable, never},
	{"io_uring", tryRing, never},
	{"exceed_memory", tryMemory, func(i Isolation) bool { return i.Rlimits }},
	{"exceed_droppable_memory", tryDroppable, func(i Isolation) bool { return i.Rlimits }},
	{"exceed_shared_memory", tryShared, never},
	{"exceed_hidden_memory", tryHidden, never},
	{"exceed_file_memory", tryFileMemory, never},
	{"exceed_stack", tryStack, never},
	{"exceed_threads", tryThreads, func(i Isolation) bool { return i.UID == UIDOwn && i.Rlimits }},
}

func filesShut(i Isolation) bool { return i.has(NamespaceMount) || i.Landlock > 0 }

func never(Isolation) bool { return false }

// attemptNames returns the names of all attempts, and stayPut.
func attemptNames() []string {
	names := []string{stayPut}
	for _, w := range ways {
		names = append(names, w.name)
	}
	return names
}

// countedByLimits lists the attempts that resource limits prevent, and filters do not.
var countedByLimits = []string{"exceed_memory", "exceed_droppable_memory"}

// mustBlock reports whether the isolation must prevent the named attempt.
func mustBlock(name string, isolation Isolation) bool {
	for _, w := range ways {
		if w.name == name {
			return w.shut(isolation) || isolation.Seccomp == SeccompStrict && !slices.Contains(countedByLimits, name)
		}
	}
	return false
}

// attempt makes the named attempt. It returns nil if it succeeded.
func attempt(name string, aims targets) error {
	i := slices.IndexFunc(ways, func(w escape) bool { return w.name == name })
	if i < 0 {
		return errors.New("no such attempt")
	}
	return ways[i].try(aims)
}

func tryOpen(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		closeFD(fd)
	}
	return err
}

// tryHostProc tries to read what a process with the same uid could read about the host.
func tryHostProc(t targets) error {
	return openOne(fmt.Sprintf("/proc/%d/environ", t.HostPID), fmt.Sprintf("/proc/%d/maps", t.HostPID),
		fmt.Sprintf("/proc/%d/cmdline", t.HostPID), "/proc/1/status")
}

// openOne tries paths until one opens.
func openOne(paths ...string) error {
	var err error
	for _, path := range paths {
		if err = tryOpen(path); err == nil {
			return nil
		}
	}
	return err
}

func tryCreate(t targets) error {
	var err error
	for _, dir := range []string{"", "/tmp", "/dev/shm", "/var/tmp", rootDir, t.DataDir} {
		path := dir + "/sluice-canary"
		var fd int
		fd, err = unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			closeFD(fd)
			return unix.Unlink(path)
		}
	}
	return err
}

// tryTCP counts a refused connection as a success, because a network has answered.
func tryTCP(targets) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil
	}
	return err
}

func tryUDP(targets) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	return unix.Sendto(fd, []byte{0}, 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
}

func tryUnix(t targets) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: t.Abstract})
}

func tryRaw(targets) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	}
	if err == nil {
		closeFD(fd)
	}
	return err
}

// tryExec executes a program. It does not return if it succeeds.
func tryExec(targets) error {
	var err error
	for _, path := range []string{"/proc/self/exe", "/bin/true", "/usr/bin/true"} {
		err = unix.Exec(path, []string{"sluice", command, CanaryArg, canaryReached}, nil)
	}
	return err
}

// tryExecMemory executes an anonymous file.
func tryExecMemory(targets) error {
	fd, err := unix.MemfdCreate("canary", 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	// No loader accepts an empty file, so ENOEXEC means that execution was permitted.
	empty, argv := []byte{0}, []*byte{nil}
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&argv[0])), unix.AT_EMPTY_PATH, 0)
	if errno == unix.ENOEXEC {
		return nil
	}
	return errno
}

// tryFork makes a process that exits immediately.
func tryFork(targets) error {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return nil
}

// tryTrace attaches to the host without stopping it; the end of the canary detaches.
func tryTrace(t targets) error {
	if t.HostPID == os.Getpid() {
		return unix.ESRCH // in a pid namespace this is the canary's own pid
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(t.HostPID), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// trySignal checks whether it may signal the host.
func trySignal(t targets) error {
	if t.HostPID == os.Getpid() {
		return unix.ESRCH // see tryTrace
	}
	return unix.Kill(t.HostPID, 0)
}

// tryMount mounts a file system of a nonexistent type. The kernel checks the permission before the type, and nothing is
// ever mounted.
func tryMount(targets) error {
	err := unix.Mount("none", "/", "sluice-canary", 0, "")
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

func tryCapabilities(targets) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := unix.CapUserData{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}
	data := [2]unix.CapUserData{all}
	return unix.Capset(&header, &data[0])
}

func tryMapExecutable(targets) error {
	_, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
	return err
}

func tryMakeExecutable(targets) error {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC)
}

func tryRing(targets) error {
	var parameters [120]byte // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
	if errno != 0 {
		return errno
	}
	closeFD(int(fd))
	return nil
}

// tryMemory allocates one page more than the limit.
func tryMemory(t targets) error {
	_, err := unix.Mmap(-1, 0, int(t.Memory)+os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	return err
}

// tryDroppable allocates one page more than the limit of memory that the kernel may take away.
func tryDroppable(t targets) error {
	const droppable = 8 // MAP_DROPPABLE
	_, err := unix.Mmap(-1, 0, int(t.Memory)+os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|droppable)
	return err
}

// tryShared allocates memory that the limit does not count.
func tryShared(t targets) error {
	_, err := unix.Mmap(-1, 0, int(t.Memory)+os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_SHARED)
	return err
}

// tryHidden makes memory read-only, which excludes it from the limit although it keeps its content, and allocates as
// much again.
func tryHidden(t targets) error {
	most := int(t.Memory) / 4 * 3
	for range 2 {
		page, err := unix.Mmap(-1, 0, most, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		if err := unix.Mprotect(page, unix.PROT_READ); err != nil {
			return err
		}
	}
	return nil
}

// tryFileMemory creates an anonymous file, whose pages no limit counts.
func tryFileMemory(targets) error {
	fd, err := unix.MemfdCreate("canary", unix.MFD_CLOEXEC)
	if err == nil {
		closeFD(fd)
	}
	return err
}

// tryStack allocates memory that counts as stack.
func tryStack(t targets) error {
	_, err := unix.Mmap(-1, 0, int(t.Memory)+os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_GROWSDOWN)
	return err
}

// tryThreads makes enough threads to crowd out others. If the runtime cannot make one, it ends the process with a
// message.
func tryThreads(targets) error {
	const many = 256
	var there sync.WaitGroup
	hold := make(chan struct{})
	defer close(hold)
	for range many {
		there.Add(1)
		go func() {
			runtime.LockOSThread()
			there.Done()
			<-hold
		}()
	}
	there.Wait()
	return nil
}

// tryOwner makes the host the owner of the canary's end of the socket. The kernel would then signal the host when data
// arrives there. The signal is one that the host's Go runtime uses itself and accepts at any time.
func tryOwner(t targets) error {
	if t.HostPID == os.Getpid() {
		return unix.ESRCH // see tryTrace
	}
	if _, err := unix.FcntlInt(SocketFD, unix.F_SETOWN, t.HostPID); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(SocketFD, unix.F_SETSIG, int(unix.SIGURG)); err != nil {
		return err
	}
	flags, err := unix.FcntlInt(SocketFD, unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(SocketFD, unix.F_SETFL, flags|unix.O_ASYNC)
	return err
}

// tryClock reads the host's CPU clock.
func tryClock(t targets) error {
	if t.HostPID == os.Getpid() {
		return unix.ESRCH // see tryTrace
	}
	_, err := processCPU(t.HostPID)
	return err
}

// A bait is a socket of the host to which a canary tries to connect.
type bait struct {
	fd   int
	name string
}

// openBait listens on an abstract Unix socket.
func openBait() (*bait, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open canary socket: %w", err)
	}
	b := &bait{fd: fd, name: "@sluice-canary-" + rand.Text()}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: b.name}); err != nil {
		closeFD(fd)
		return nil, fmt.Errorf("bind canary socket: %w", err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		closeFD(fd)
		return nil, fmt.Errorf("listen on canary socket: %w", err)
	}
	return b, nil
}

func (b *bait) close() { closeFD(b.fd) }
