package jail

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MemFD returns a file in memory with parts in it, one after the other, sealed: nobody,
// its creator included, can write, grow, shrink or unseal it, so the bytes that were
// hashed are the bytes that are compiled. name shows in /proc only.
func MemFD(name string, parts ...[]byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	for _, part := range parts {
		if _, err := file.Write(part); err != nil {
			_ = file.Close() // the write's error is the one that counts
			return nil, fmt.Errorf("fill memory file: %w", err)
		}
	}
	if _, err := file.Seek(0, 0); err != nil {
		_ = file.Close() // see above
		return nil, fmt.Errorf("rewind memory file: %w", err)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		_ = file.Close() // see above
		return nil, fmt.Errorf("seal memory file: %w", err)
	}
	return file, nil
}
