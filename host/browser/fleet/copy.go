package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A Cloner makes an empty file share the content of another without using space. It returns
// errors.ErrUnsupported if the file system cannot do that.
type Cloner func(to, from *os.File) error

// mostCopied bounds the files of a profile that are copied; a larger profile gets no copy.
const mostCopied = 20_000

// Names, beside a profile, of the copy being made before the profile is opened, and of the last
// copy that opened. They belong to the host and are no profile names.
func copying(name string) string { return ".copying-" + name }
func copied(name string) string  { return ".copy-" + name }

// copy copies a profile before it is opened. The caller holds its lock. Caches and everything that
// is not a regular file are left out.
func (f *folders) copy(ctx context.Context, clone Cloner, connection, name string) (err error) {
	at := filepath.Join(connection, copying(name))
	if err := f.root.RemoveAll(at); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy a profile: %w", err), f.root.RemoveAll(at))
		}
	}()
	from, err := f.root.OpenRoot(filepath.Join(connection, name))
	if err != nil {
		return err
	}
	defer from.Close()
	if err := f.root.Mkdir(at, 0o700); err != nil {
		return err
	}
	to, err := f.root.OpenRoot(at)
	if err != nil {
		return err
	}
	defer to.Close()
	left := mostCopied
	err = fs.WalkDir(from.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case path == ".":
			return nil
		case e.IsDir() && strings.HasSuffix(e.Name(), "Cache"):
			return fs.SkipDir
		case e.IsDir():
			return to.Mkdir(path, 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		if left--; left < 0 {
			return errors.New("it has too many files")
		}
		return cloneFile(to, from, path, clone)
	})
	if err == nil && left == mostCopied { // an empty profile has nothing to lose
		err = f.root.RemoveAll(at)
	}
	return err
}

func cloneFile(to, from *os.Root, path string, clone Cloner) (err error) {
	src, err := from.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := to.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	return clone(dst, src)
}

// opened keeps the latest copy, since the profile opened in that state.
func (f *folders) opened(connection, name string) error {
	at := filepath.Join(connection, copying(name))
	if _, err := f.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to := filepath.Join(connection, copied(name))
	return errors.Join(f.root.RemoveAll(to), f.root.Rename(at, to))
}

// restore replaces a profile that does not open by its copy. It reports false if there is none. No
// process of the profile may be running, and the caller holds its lock.
func (f *folders) restore(connection, name string) (bool, error) {
	from, profile, aside := filepath.Join(connection, copied(name)), filepath.Join(connection, name),
		filepath.Join(connection, copying(name))
	if _, err := f.root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err := f.root.RemoveAll(aside)
	if err == nil {
		err = f.root.Rename(profile, aside)
	}
	if err == nil {
		err = f.root.Rename(from, profile)
	}
	if err != nil {
		return false, fmt.Errorf("restore a profile: %w", err)
	}
	return true, f.root.RemoveAll(aside)
}
