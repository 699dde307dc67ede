package sandbox

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// discard removes what a compile worker left, which has ended. Directories may be
// nested as deep as there are inodes, so nothing here depends on the depth: what is in
// a directory is moved up, each name once, and the directory removed.
func discard(dir string) error {
	prefix := rand.Text() // no name of the worker's begins so
	moved := 0
	for {
		list, err := os.ReadDir(dir)
		if err != nil || len(list) == 0 {
			return errors.Join(err, os.Remove(dir))
		}
		for _, d := range list {
			path := filepath.Join(dir, d.Name())
			if d.IsDir() {
				if err := lift(path, func() string { moved++; return filepath.Join(dir, prefix+strconv.Itoa(moved)) }); err != nil {
					return err
				}
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
}

// lift moves everything out of dir, to the paths that next gives.
func lift(dir string, next func() string) error {
	if err := os.Chmod(dir, 0o700); err != nil { // #nosec G302: a directory, which its owner may have shut
		return err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, d := range list {
		path := filepath.Join(dir, d.Name())
		if d.IsDir() {
			if err := os.Chmod(path, 0o700); err != nil { // #nosec G302: a directory; what is moved gets another parent, and is written
				return err
			}
		}
		if err := os.Rename(path, next()); err != nil {
			return err
		}
	}
	return nil
}
