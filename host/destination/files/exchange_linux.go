package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in a directory in one step. Not every file system can do that.
func exchange(root *os.Root, a, b string) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	fd := int(d.Fd()) // #nosec G115 -- a descriptor fits
	return errors.Join(unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE), d.Close())
}
