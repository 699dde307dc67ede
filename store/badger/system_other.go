//go:build !linux

package badger

import (
	"fmt"
	"os"
)

// checkFS accepts every directory, because there is no reliable test outside Linux.
func checkFS(string) error { return nil }

// allocate fills f with n bytes.
func allocate(f *os.File, n int64) error {
	zero := make([]byte, 1<<20)
	for n > 0 {
		k, err := f.Write(zero[:min(n, int64(len(zero)))])
		if err != nil {
			return fmt.Errorf("fill ballast: %w", err)
		}
		n -= int64(k)
	}
	return nil
}

// writeback does nothing.
func writeback(*os.File, int64, int64) {}
