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

// errThreads: a build with cgo cannot reach threads that it does not know.
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

// forbidNewPrivileges sets no_new_privs on every thread. In a build with cgo it
// reaches the calling thread, and the filter installed from there spreads it.
func forbidNewPrivileges() error {
	err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
	if errors.Is(err, errThreads) {
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return err
}

// watchParent arms the parent-death signal again, which every change of identity
// clears, and finds out whether the host died before that. In a pid
// namespace the parent has no pid, so the socket is asked too: a dying process
// closes its descriptors before its children are signalled, so a host that is
// alive here will signal, and one that is not has hung up.
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

// dropIdentity gives up uid, groups and all capability sets. What cannot be
// given up shows in the isolation: a uid that stays is reported as shared.
func (i *Inside) dropIdentity(id Identity) {
	dropBounding()
	if id.UID >= 0 && becomeUser(id.UID, id.GID) == nil {
		i.isolation.UID = UIDOwn
	}
	_ = dropCapabilities() // dropping is always permitted; errThreads: see doc.go
	// A change of identity may make a process dumpable again.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// becomeUser changes uid and gid of all threads and leaves every supplementary group.
func becomeUser(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

// dropBounding empties the bounding set, so that not even an exec as uid 0 of a
// user namespace regains a capability. It ends at the first number the kernel
// does not know, or at once for a process that may not. It is the slowest of all
// steps, 40 calls on every thread, and is done only once.
func dropBounding() {
	const most = 63
	for number := range uintptr(most) {
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

// dropCapabilities empties the effective, permitted and inheritable sets, and
// with them the ambient one.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
}

// spareThreads is how many idle threads the runtime of a worker is given before
// none can be made any more. At most four of its goroutines wait in the kernel at a
// time (the guest, the watch over the socket, a compiler's files), GOMAXPROCS run, and
// every other thread of the runtime is there before the first of these. The rest are for
// threads on their way to idle: on a busy machine each may be held up there for long.
const spareThreads = 8

// makeThreads makes, once, the threads that the runtime may ever need. While there
// is an idle one the runtime asks for no other.
var makeThreads = sync.OnceValue(func() error {
	spare := spareThreads + runtime.GOMAXPROCS(0)
	var there, gone sync.WaitGroup
	release := make(chan struct{})
	for range spare {
		there.Add(1)
		gone.Go(func() {
			runtime.LockOSThread() // so that each has a thread of its own, which stays when it is let go
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

// threadsSettled waits for the threads that the runtime has ordered: it has them made by
// one of its own, and one that was still to be made would fail behind the walls.
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

// forbidThreads takes from the process the means to make another thread: the limit
// says so wherever the kernel counts processes, which is by uid and user namespace, and
// the filters say so everywhere. How many a shared uid has is of no matter: none is to be made.
func forbidThreads() error {
	if err := lower(unix.RLIMIT_NPROC, 0); err != nil {
		return fmt.Errorf("forbid threads: %w", err)
	}
	return nil
}

// workerNice is how far a worker stands behind its host where processors are short. It
// is one step: on a machine that is busy with something else, more would starve it.
const workerNice = 1

// yieldPriority makes the calling thread, and what is started from it, yield to
// the rest of the machine. It cannot be taken back without privilege.
func yieldPriority() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, workerNice) // who is lower already stays there
}

// volunteer makes the process the first that a machine without memory ends, and
// its session one that yields to the host's, where sessions share processors
// (autogroup). Anybody may do either to himself. It is done once, before the process is
// undumpable: its own files under /proc belong to root from then on.
var volunteer = sync.OnceValue(func() error {
	// The file is not on every kernel, and refuses writes that come too often.
	_ = os.WriteFile("/proc/self/autogroup", fmt.Appendf(nil, "%d", workerNice), 0)
	err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without /proc nobody can
		return fmt.Errorf("volunteer for the end of memory: %w", err)
	}
	return nil
})
