package jail

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The package uses plain system calls because the rule begins at a descriptor. go-landlock opens paths, and the
// worker's directory may have no accessible path.

// Landlock ABI versions that introduced a right.
const (
	abiRefer    = 2
	abiTruncate = 3
	abiTCP      = 4
	abiIoctl    = 5
	abiScopes   = scopedLandlock
	abiUnix     = 9
	abiUDP      = 10
)

const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// landlockWrite includes removing files because renaming requires it. Directories cannot be made.
	landlockWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
	// firstFiles are the file rights of ABI 1.
	firstFiles = 1<<13 - 1
	// fixedSignals means that the signal scope lets threads of one process signal each other.
	fixedSignals = 1 << 1
)

// restrictFiles denies all threads every right that the kernel's Landlock knows, except for reading below dir and, if
// writable is true, writing there. It returns the ABI in force.
func restrictFiles(dir int, writable bool) (int, error) {
	abi, err := landlockABI()
	if err != nil {
		return 0, err
	}
	handled := landlockHandled(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handled)),
		unsafe.Sizeof(handled), 0)
	if errno != 0 {
		return 0, fmt.Errorf("create landlock rules: %w", errno)
	}
	defer closeFD(int(fd))
	if dir != NoDir {
		if err := allowBelow(int(fd), dir, landlockRights(writable)&handled.Handled_access_fs); err != nil {
			return 0, err
		}
	}
	if err := everyThread(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); err != nil {
		return 0, fmt.Errorf("apply landlock rules: %w", err)
	}
	if handled.Scoped&unix.LANDLOCK_SCOPE_SIGNAL == 0 {
		abi = min(abi, abiScopes-1)
	}
	return abi, nil
}

// landlockABI returns the version that the kernel offers.
func landlockABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("ask for landlock: %w", errno)
	}
	return int(abi), nil
}

// landlockHandled returns everything that an ABI can deny.
func landlockHandled(abi int) unix.LandlockRulesetAttr {
	handled := unix.LandlockRulesetAttr{Handled_access_fs: firstFiles}
	files := []struct {
		since int
		right uint64
	}{
		{abiRefer, unix.LANDLOCK_ACCESS_FS_REFER},
		{abiTruncate, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{abiIoctl, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{abiUnix, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
	}
	for _, f := range files {
		if abi >= f.since {
			handled.Handled_access_fs |= f.right
		}
	}
	if abi >= abiTCP {
		handled.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= abiUDP {
		handled.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
	}
	if abi >= abiScopes {
		handled.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if signalScopeFixed() {
			handled.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	return handled
}

// signalScopeFixed reports whether the signal scope exempts threads of the same process. Without that fix the Go
// runtime could not preempt goroutines.
func signalScopeFixed() bool {
	errata, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return errno == 0 && errata&fixedSignals != 0
}

func landlockRights(writable bool) uint64 {
	if writable {
		return landlockRead | landlockWrite | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	return landlockRead
}

// allowBelow adds the only rule: rights for the directory dir and everything in it.
func allowBelow(ruleset, dir int, rights uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(dir)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("add landlock rule: %w", errno)
	}
	return nil
}
