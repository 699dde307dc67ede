//go:build unix

package files

import (
	"errors"
	"os"
)

// syncDir makes the names in a directory durable.
func syncDir(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
