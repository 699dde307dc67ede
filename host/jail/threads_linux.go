package jail

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errThreads: a build with cgo cannot reach threads that it does not know (S15).
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
// clears, and finds out whether the host died before that (S13). In a pid
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
