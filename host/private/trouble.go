package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Trouble says in a sentence what is wrong with the path in an error of the file system or of this package, and what to
// do, if something is in the place of one of the host's own files or directories, or it may not be used. Otherwise it
// returns "".
func Trouble(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.Error()
	}
	var at *fs.PathError
	if !errors.As(err, &at) || !filepath.IsAbs(at.Path) {
		return ""
	}
	switch {
	case errors.Is(at, syscall.ENOTDIR), errors.Is(at, fs.ErrExist) && at.Op == "mkdir", errors.Is(at, fs.ErrNotExist):
		return inTheWay(at.Path, !errors.Is(at, fs.ErrNotExist))
	case errors.Is(at, syscall.EISDIR):
		return at.Path + " is a directory, and a file has to be there; move it away"
	case errors.Is(at, syscall.EROFS):
		return at.Path + " is on a file system that can only be read; mount it so that the host may write"
	case errors.Is(at, fs.ErrPermission):
		return fmt.Sprintf("the user that Sluice runs as (%d) may not use %s; make it theirs: chown, and chmod u+rwX", os.Geteuid(),
			at.Path)
	}
	return ""
}

// inTheWay finds the first part of a path that is a link to nothing or, if files is set, no directory.
func inTheWay(path string, files bool) string {
	parts := []string{path}
	for dir := filepath.Dir(path); dir != parts[len(parts)-1]; dir = filepath.Dir(dir) {
		parts = append(parts, dir)
	}
	for _, part := range slices.Backward(parts) {
		fi, err := os.Stat(part)
		switch {
		case err == nil && files && !fi.IsDir():
			return part + " is a file, and a directory has to be there; move it away"
		case err == nil:
			continue
		}
		if to, err := os.Readlink(part); err == nil {
			return fmt.Sprintf("%s is a link to %s, which is not there; bring that back, or remove the link", part, to)
		}
		return ""
	}
	return ""
}
