package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errThreads reports that a cgo build cannot reach threads that it does not know.
var errThreads = errors.New("build with CGO_ENABLED=0 to reach every thread")

// everyThread makes a system call on every thread of the process.
func everyThread(call, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(call, a, b, c)
	switch errno {
	case 0:
		return nil
	case syscall.ENOTSUP:
		return errThreads
	}
	return errno
}

// forbidNewPrivileges sets no_new_privs for every thread. In a cgo build it reaches only the calling thread, and
// installing the filter from there spreads it.
func forbidNewPrivileges() error {
	err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
	if errors.Is(err, errThreads) {
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return err
}

// watchParent sets the parent-death signal again, which every change of identity clears, and returns ErrOrphan if the
// host died before. In a pid namespace the parent has no pid, so it also checks the socket: a dying process closes its
// descriptors before its children are signaled, so a host that is alive at this point will signal, and one that is not
// has hung up.
func watchParent(parent int) error {
	err := everyThread(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	if errors.Is(err, errThreads) {
		err = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	}
	if err != nil {
		return err
	}
	if now := unix.Getppid(); now != 0 && now != parent {
		return ErrOrphan
	}
	ends := []unix.PollFd{{Fd: SocketFD}}
	if n, err := unix.Poll(ends, 0); err == nil && n > 0 && ends[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
		return ErrOrphan
	}
	return nil
}

// dropIdentity drops uid, groups and all capability sets. What cannot be dropped is visible in the isolation: a uid
// that stays is reported as shared.
func (i *Inside) dropIdentity(id Identity) {
	dropBounding()
	if id.UID >= 0 && becomeUser(id.UID, id.GID) == nil {
		i.isolation.UID = UIDOwn
	}
	_ = dropCapabilities() // always permitted; for errThreads see doc.go
	// A change of identity may make a process dumpable again.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// becomeUser changes uid and gid of all threads and drops all supplementary groups.
func becomeUser(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

// entering lists the capabilities that a worker uses until it has entered: mounts, files of others, an output that is
// given to its uid, an identity of its own.
var entering = []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}

// lastCapability is the highest number that a set has room for.
const lastCapability = 63

// boundChildren has what root starts from the calling thread begin with an empty bounding set and the capabilities of
// entering, which it inherits. Otherwise each worker would begin with all and empty the set itself, with 40 calls on
// every thread. It does nothing without the privilege, and a user namespace begins with a full set all the same:
// dropBounding does what is left.
func boundChildren() {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if os.Geteuid() != 0 || unix.Capget(&header, &data[0]) != nil {
		return
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	for _, number := range entering {
		data[number/32].Inheritable |= data[number/32].Permitted & (1 << (number % 32))
	}
	if unix.Capset(&header, &data[0]) != nil {
		return
	}
	for number := range uintptr(lastCapability) {
		if unix.Prctl(unix.PR_CAPBSET_DROP, number, 0, 0, 0) != nil {
			return
		}
	}
}

// dropBounding empties the bounding set, so that even an exec as uid 0 of a user namespace regains no capability. It
// stops at the first number that the kernel does not know, or at once if it is not permitted. Without
// boundChildren it is the slowest step, with 40 calls on every thread. It is only effective once.
func dropBounding() {
	for number := range uintptr(lastCapability) {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, number, 0, 0, 0); err != nil || has == 0 {
			if err != nil {
				return
			}
			continue
		}
		if err := everyThread(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, number, 0); err != nil {
			return
		}
	}
}

// dropCapabilities empties the effective, permitted and inheritable sets, and thereby the ambient set.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
}

// spareThreads is the number of idle threads that a worker's runtime gets before making threads is forbidden. At most
// four of its goroutines wait in the kernel at a time (the guest, the watch over the socket, a compiler's files),
// GOMAXPROCS run, and all other threads of the runtime already exist. The rest are for threads that are becoming idle,
// which may take long on a busy machine.
const spareThreads = 8

// makeThreads makes, once, all threads that the runtime may ever need. While there is an idle one, the runtime requests
// no other.
var makeThreads = sync.OnceValue(func() error {
	spare := spareThreads + runtime.GOMAXPROCS(0)
	var there, gone sync.WaitGroup
	release := make(chan struct{})
	for range spare {
		there.Add(1)
		gone.Go(func() {
			runtime.LockOSThread() // so that each has its own thread, which stays when it is unlocked
			defer runtime.UnlockOSThread()
			there.Done()
			<-release
		})
	}
	there.Wait()
	close(release)
	gone.Wait()
	return threadsSettled()
})

// threadsSettled waits for the threads that the runtime has requested. One of the runtime's own threads makes them,
// which would fail once that is forbidden.
func threadsSettled() error {
	for {
		var tasks unix.Stat_t
		if err := unix.Stat("/proc/self/task", &tasks); err != nil {
			return fmt.Errorf("count threads: %w", err)
		}
		const ownLinks = 2 // of a directory; each thread is one more
		ordered, _ := runtime.ThreadCreateProfile(nil)
		if int(tasks.Nlink)-ownLinks >= ordered-spareRecords {
			return nil
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// forbidThreads prevents the process from making threads. The limit applies wherever the kernel counts processes, by
// uid and user namespace; the filters apply everywhere. It does not matter how many a shared uid already has, because
// none may be made.
func forbidThreads() error {
	if err := lower(unix.RLIMIT_NPROC, 0); err != nil {
		return fmt.Errorf("forbid threads: %w", err)
	}
	return nil
}

// workerNice is how much a worker's priority is below the host's. It is one step, because more would starve it on a
// machine that is busy with something else.
const workerNice = 1

// yieldPriority lowers the priority of the calling thread and of what is started from it. Without privileges it cannot
// be raised again.
func yieldPriority() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, workerNice) // a lower priority stays
}

// volunteer makes the process the first to be ended when the machine is out of memory, and its session yield to the
// host's where sessions share processors (autogroup). Both need no privileges. It runs once, before the process becomes
// undumpable, because then its files under /proc belong to root.
var volunteer = sync.OnceValue(func() error {
	// The file may be missing, and rejects writes that are too frequent.
	_ = os.WriteFile("/proc/self/autogroup", fmt.Appendf(nil, "%d", workerNice), 0)
	err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // impossible without /proc
		return fmt.Errorf("volunteer for the end of memory: %w", err)
	}
	return nil
})
