package jail

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// errHalfway reports that the root was changed but a later step failed. The worker must exit. After an earlier failure
// it still has its old root and can continue with it.
var errHalfway = errors.New("half in the new root")

const (
	rootName = "code"
	// rootDir is the only entry of a worker's root.
	rootDir = "/" + rootName

	rootBytes  = "65536"
	rootInodes = "8"
)

// mountpoints lists directories of which every Linux system has at least one. The new root is attached there, in the
// worker's own mount namespace, until it becomes the root.
var mountpoints = []string{"/tmp", "/proc", "/dev", "/sys", "/etc", "/usr", "/var"}

// enterRoot replaces the root of the process, for all threads, by a read-only 64 KiB tmpfs whose only entry is the
// directory open as dir, and detaches everything else. It reopens dir through the new root, because the old descriptor
// would still give access to the directories above.
func enterRoot(dir int, writable bool) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	tree, err := cloneTree(dir, writable)
	if err != nil {
		return err
	}
	defer closeFD(tree)
	root, err := mountRoot()
	if err != nil {
		return err
	}
	defer closeFD(root)
	if err := fillRoot(root, tree); err != nil {
		return err
	}
	if err := makeRoot(root); err != nil {
		return err
	}
	if dir == NoDir {
		return nil
	}
	if err := reopen(dir); err != nil {
		return fmt.Errorf("%w: %w", errHalfway, err)
	}
	return nil
}

// cloneTree returns a detached mount of the directory open as dir, or -1 for NoDir. dir belongs to the host's mount
// namespace, from which mounts cannot be cloned, so cloneTree looks up the same directory in this namespace and
// compares them.
func cloneTree(dir int, writable bool) (int, error) {
	if dir == NoDir {
		return -1, nil
	}
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir))
	if err != nil {
		return -1, fmt.Errorf("find handed directory: %w", err)
	}
	here, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open handed directory: %w", err)
	}
	defer closeFD(here)
	var given, found unix.Stat_t
	if err := unix.Fstat(dir, &given); err != nil {
		return -1, fmt.Errorf("stat handed directory: %w", err)
	}
	if err := unix.Fstat(here, &found); err != nil {
		return -1, fmt.Errorf("stat found directory: %w", err)
	}
	if given.Dev != found.Dev || given.Ino != found.Ino {
		return -1, fmt.Errorf("find handed directory: another one is in its place")
	}
	tree, err := unix.OpenTree(here, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("clone handed directory: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	if !writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		closeFD(tree)
		return -1, fmt.Errorf("restrict handed directory: %w", err)
	}
	return tree, nil
}

// mountRoot makes the tmpfs and attaches it to a mountpoint.
func mountRoot() (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open tmpfs: %w", err)
	}
	defer closeFD(fs)
	for _, option := range [][2]string{{"size", rootBytes}, {"nr_inodes", rootInodes}, {"mode", "0555"}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("configure tmpfs: %w", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("create tmpfs: %w", err)
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC,
		unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("mount tmpfs: %w", err)
	}
	for _, place := range mountpoints {
		if err = unix.MoveMount(root, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH); err == nil {
			return root, nil
		}
	}
	closeFD(root)
	return -1, fmt.Errorf("attach tmpfs: %w", err)
}

// fillRoot attaches the tree to the root and makes the root read-only.
func fillRoot(root, tree int) error {
	if tree >= 0 {
		if err := unix.Mkdirat(root, rootName, 0o555); err != nil {
			return fmt.Errorf("make directory in new root: %w", err)
		}
		if err := unix.MoveMount(tree, "", root, rootName, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("attach handed directory: %w", err)
		}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(root, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("make new root read-only: %w", err)
	}
	return nil
}

// makeRoot makes the mount open as root the root of the process. If pivot_root is not possible (initramfs, chroot), it
// covers the old root instead, which is equivalent for a process without capabilities.
func makeRoot(root int) error {
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("go to new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err == nil {
		if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("%w: detach old root: %w", errHalfway, err)
		}
		return unix.Chdir("/")
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("cover old root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("%w: change root: %w", errHalfway, err)
	}
	return unix.Chdir("/")
}

// reopen makes dir refer to the directory in the new root.
func reopen(dir int) error {
	fd, err := unix.Open(rootDir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("reopen directory: %w", err)
	}
	defer closeFD(fd)
	if err := unix.Dup3(fd, dir, unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("replace directory: %w", err)
	}
	return nil
}

// closeFD closes a descriptor that was not written to. It ignores -1.
func closeFD(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd) // nothing was written through it
	}
}
