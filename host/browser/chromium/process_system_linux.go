package chromium

import "golang.org/x/sys/unix"

// sharedMemoryEnough is how large /dev/shm must be for a browser to use it (B246).
const sharedMemoryEnough = 512 << 20

func smallSharedMemory() bool {
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil {
		return true
	}
	return int64(fs.Blocks)*fs.Bsize < sharedMemoryEnough // #nosec G115 -- a size
}
