package badger

import (
	"fmt"
	"os"
	"syscall"
)

// networkFS names file systems with unreliable locks and mapped writes by their magic number (statfs(2)).
var networkFS = map[uint32]string{
	0x6969:     "nfs",
	0x517B:     "smb",
	0xFF534D42: "cifs",
	0xFE534D42: "smb2",
	0x01021997: "9p",
	0x5346414F: "afs",
	0x73757245: "coda",
	0x00C36400: "ceph",
	0x0BD00BD0: "lustre",
	0x65735546: "fuse",
}

func checkFS(dir string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return fmt.Errorf("inspect file system: %w", err)
	}
	return refuseFS(dir, uint32(s.Type))
}

func refuseFS(dir string, magic uint32) error {
	if name, ok := networkFS[magic]; ok {
		return fmt.Errorf(
			"data directory %s is on %s, where locks and mapped writes are not dependable; choose a local disk, or allow network file systems", dir, name)
	}
	return nil
}

// allocate reserves n bytes of f on the disk.
func allocate(f *os.File, n int64) error {
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, n); err != nil {
		return fmt.Errorf("allocate ballast: %w", err)
	}
	return nil
}

// writeback asks the kernel to start writing a part of f. It is a hint; failures surface in Sync.
func writeback(f *os.File, offset, n int64) {
	const begin = 2 // SYNC_FILE_RANGE_WRITE
	_ = syscall.SyncFileRange(int(f.Fd()), offset, n, begin)
}
