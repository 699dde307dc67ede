package browser

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

// OpenTrace opens the archive of a run for reading: fs.ErrNotExist when there is none.
func OpenTrace(dir, run string) (*os.File, error) {
	if !isRun(run) {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if fi, err := root.Lstat(TraceName(run)); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	return root.Open(TraceName(run))
}

// StatTrace looks at the archive of a run without opening it: fs.ErrNotExist when there is
// none.
func StatTrace(dir, run string) (fs.FileInfo, error) {
	if !isRun(run) {
		return nil, fs.ErrNotExist
	}
	fi, err := os.Lstat(filepath.Join(dir, TraceName(run)))
	if err == nil && !fi.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	return fi, err
}

// RemoveTrace removes the archive of a run, if there is one.
func RemoveTrace(dir, run string) error {
	if !isRun(run) {
		return nil
	}
	if err := os.Remove(filepath.Join(dir, TraceName(run))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// TracedRuns names the runs that have an archive, in no order. A directory that is not
// there has none.
func TracedRuns(dir string) iter.Seq2[string, error] {
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
