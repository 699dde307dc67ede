//go:build !linux

package files

import (
	"errors"
	"os"
)

func exchange(*os.Root, string, string) error { return errors.ErrUnsupported }
