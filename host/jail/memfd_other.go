//go:build !linux

package jail

import (
	"fmt"
	"os"
)

// MemFD returns a read-only file with parts in it, one after the other and, where the system allows
// that, without a name. It is not sealed as on Linux: only this process could
// have changed it while it was written (S11).
func MemFD(name string, parts ...[]byte) (*os.File, error) {
	out, err := os.CreateTemp("", name+"-*")
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	defer os.Remove(out.Name()) // where open files cannot be removed, the system's cleaner does
	for _, part := range parts {
		if err == nil {
			_, err = out.Write(part)
		}
	}
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
