package trace

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// Beginning and end of the names of archives.
const (
	before = "browser-trace-"
	ending = ".zip"
)

// Open opens the archive of a run for reading: fs.ErrNotExist when there is none.
func Open(dir, run string) (*os.File, error) {
	if !isRun(run) {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if fi, err := root.Lstat(Name(run)); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	return root.Open(Name(run))
}

// Stat looks at the archive of a run without opening it: fs.ErrNotExist when there is
// none.
func Stat(dir, run string) (fs.FileInfo, error) {
	if !isRun(run) {
		return nil, fs.ErrNotExist
	}
	fi, err := os.Lstat(filepath.Join(dir, Name(run)))
	if err == nil && !fi.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	return fi, err
}

// Remove removes the archive of a run, if there is one.
func Remove(dir, run string) error {
	if !isRun(run) {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, Name(run))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Runs names the runs that have an archive, in no order. A directory that is not
// there has none.
func Runs(dir string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", err)
			return
		}
		for _, e := range entries {
			run, ok := strings.CutPrefix(e.Name(), before)
			run, zip := strings.CutSuffix(run, ending)
			if ok && zip && isRun(run) && !yield(run, nil) {
				return
			}
		}
	}
}

// isRun: an id that can be in the name of a file.
func isRun(run string) bool { return filepath.IsLocal(run) && !strings.ContainsAny(run, `/\`) }
