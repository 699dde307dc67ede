//go:build !linux

package jail

import (
	"fmt"
	"os"
)

// MemFD returns a read-only file with data in it and, where the system allows
// that, without a name. It is not sealed as on Linux: only this process could
// have changed it while it was written (S11).
func MemFD(name string, data []byte) (*os.File, error) {
	out, err := os.CreateTemp("", name+"-*")
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	defer os.Remove(out.Name()) // where open files cannot be removed, the system's cleaner does
	_, err = out.Write(data)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("fill memory file: %w", err)
	}
	in, err := os.Open(out.Name())
	if err != nil {
		return nil, fmt.Errorf("reopen memory file: %w", err)
	}
	return in, nil
}
