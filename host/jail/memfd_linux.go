package jail

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MemFD returns an anonymous file that contains parts, one after the other. It is sealed: nobody, including its
// creator, can write, grow, shrink or unseal it, so the bytes that are compiled are those that were hashed. name only
// appears in /proc.
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
			_ = file.Close() // report the error of the write
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
