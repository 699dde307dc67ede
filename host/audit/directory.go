package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluicehost/sluice/host/private"
)

// ErrUnsafe means that others have access to the log, or that something else is in its place.
var ErrUnsafe = errors.New("the audit log is not safe")

// A directory is an open directory of the log.
//
// Invariant: it was accessible to nobody else when it was opened, and no link led to it.
type directory struct {
	root *os.Root
	path string // for errors
}

func (d *directory) Close() error { return d.root.Close() }

// makeDirectory opens a directory in the data directory, creating both if they are missing.
func makeDirectory(data string, names ...string) (*directory, error) {
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, fmt.Errorf("make data directory: %w", err)
		}
	}
	path := data
	for _, n := range names {
		path = filepath.Join(path, n)
		err := os.Mkdir(path, 0o700)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make directory of the audit log: %w", err)
		}
		if err == nil {
			err = private.SyncPath(filepath.Dir(path))
		} else {
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	return openDirectory(data, names...)
}

// openDirectory opens an existing directory. The error wraps fs.ErrNotExist if it is missing.
func openDirectory(data string, names ...string) (*directory, error) {
	path := filepath.Join(append([]string{data}, names...)...)
	before, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	if err := private.Check(before, path, fs.ModeDir, ErrUnsafe); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	now, err := root.Stat(".")
	if err == nil {
		err = private.Same(before, now, path, ErrUnsafe)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &directory{root, path}, nil
}

// locked calls do while no other goroutine or process changes the log.
func (d *directory) locked(do func() error) error {
	f, err := d.root.Open(".")
	if err != nil {
		return fmt.Errorf("lock audit log: %w", err)
	}
	defer f.Close()
	release, err := private.Lock(f, false)
	if err != nil {
		return fmt.Errorf("lock audit log: %w", err)
	}
	defer release()
	return do()
}

// open opens a regular file of this user.
func (d *directory) open(name string, flags int) (*os.File, int64, error) {
	f, fi, err := private.OpenFile(d.root, name, filepath.Join(d.path, name), flags, ErrUnsafe)
	if err != nil {
		return nil, 0, err
	}
	return f, fi.Size(), nil
}

// create creates a file.
func (d *directory) create(name string) (*os.File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := d.sync(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d *directory) sync() error { return private.Sync(d.root) }

// fileName returns the name of the file with a number. The names sort by number.
func fileName(number int) string { return fmt.Sprintf("%08d.jsonl", number) }

var numbered = lazily(`^[0-9]{8}\.jsonl$`)

// files returns the numbered files of the directory in order.
func (d *directory) files() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(n string) bool { return !numbered().MatchString(n) })
	slices.Sort(names)
	return names, err
}

// after returns the name of the file that follows the last of names.
func after(names []string) (string, error) {
	if len(names) == 0 {
		return fileName(1), nil
	}
	n := 0
	if _, err := fmt.Sscanf(names[len(names)-1], "%08d.jsonl", &n); err != nil {
		return "", err
	}
	if n++; n > 99_999_999 {
		return "", fmt.Errorf("%w: the files have used all numbers", ErrUnsafe)
	}
	return fileName(n), nil
}
