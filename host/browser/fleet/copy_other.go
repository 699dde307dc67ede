//go:build !linux

package fleet

import (
	"errors"
	"os"
)

// reflink is the Cloner of a system without one.
func reflink(_, _ *os.File) error { return errors.ErrUnsupported }
