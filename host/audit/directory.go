package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
)

// ErrUnsafe: others can reach the log, or it is not what belongs there.
var ErrUnsafe = errors.New("the audit log is not safe")

// A directory is an open directory of the log.
//
// Invariant: it was accessible to nobody else when it was opened, and no link led to it.
type directory struct {
	root *os.Root
	path string // for errors
}

func (d *directory) Close() error { return d.root.Close() }

// makeDirectory opens a directory in the data directory, and makes it and that
// if they are missing.
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
			err = syncPath(filepath.Dir(path))
		} else {
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	return openDirectory(data, names...)
}

// openDirectory opens one that is there; the error wraps fs.ErrNotExist if it is
// not.
func openDirectory(data string, names ...string) (*directory, error) {
	path := filepath.Join(append([]string{data}, names...)...)
	before, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	if err := private(before, path, fs.ModeDir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(before, now) {
		err = fmt.Errorf("%w: %s was replaced while it was opened", ErrUnsafe, path)
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
	release, err := lock(f)
	if err != nil {
		return fmt.Errorf("lock audit log: %w", err)
	}
	defer release()
	return do()
}

// open opens a regular file of ours.
func (d *directory) open(name string, flags int) (*os.File, int64, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	path := filepath.Join(d.path, name)
	if err := private(before, path, 0); err != nil {
		return nil, 0, err
	}
	f, err := d.root.OpenFile(name, flags|syscall.O_NONBLOCK, 0) // whatever it is by now, opening it must not wait
	if err != nil {
		return nil, 0, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(before, now) {
		err = fmt.Errorf("%w: %s was replaced while it was opened", ErrUnsafe, path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, now.Size(), nil
}

// create makes a new file.
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

func (d *directory) sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}

// fileName is that of the file with a number; they sort.
func fileName(number int) string { return fmt.Sprintf("%08d.jsonl", number) }

var numbered = regexp.MustCompile(`^[0-9]{8}\.jsonl$`)

// files lists the numbered files of the directory in order.
func (d *directory) files() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(n string) bool { return !numbered.MatchString(n) })
	slices.Sort(names)
	return names, err
}

// after is the name of the file that follows the last of names.
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

// private refuses what is not of the type, not ours, or not ours alone, with the command that
// repairs it.
func private(fi fs.FileInfo, path string, typ fs.FileMode) error {
	switch {
	case fi.Mode().Type() != typ && typ == fs.ModeDir:
		return fmt.Errorf("%w: %s is no directory; move it away", ErrUnsafe, path)
	case fi.Mode().Type() != typ:
		return fmt.Errorf("%w: %s is no regular file; move it away", ErrUnsafe, path)
	case foreign(fi):
		return fmt.Errorf("%w: %s belongs to another user; if you trust it, make it yours: chown %d %s", ErrUnsafe, path, os.Geteuid(), path)
	case exposed(fi):
		return fmt.Errorf("%w: others can reach %s; if nobody did, run: chmod go-rwx %s", ErrUnsafe, path, path)
	}
	return nil
}
