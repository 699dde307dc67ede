//go:build !unix

package fleet

import (
	"errors"
	"os"
)

func tryLock(*os.File) (bool, error) {
	return false, errors.New("profiles cannot be locked on this system")
}
