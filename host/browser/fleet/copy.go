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

// A Cloner makes an empty file share the content of another one, which costs no
// space. Its error is errors.ErrUnsupported where the file system cannot do that.
type Cloner func(to, from *os.File) error

// mostCopied is how many files of a profile are copied; one with more has no copy.
const mostCopied = 20_000

// The names beside a profile of what is copied before it is opened, and of the copy
// once that has opened: the host's alone, and no profile's.
func copying(name string) string { return ".copying-" + name }
func copied(name string) string  { return ".copy-" + name }

// copy copies a profile as it is now, before it is opened. The caller holds its
// lock. What it needs no copy of, as caches, is left out; what is no plain file is the
// browser's own business.
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
	if err == nil && left == mostCopied { // nothing is lost with a profile that is new
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

// opened makes what was copied last the copy: the profile opened as it was.
func (f *folders) opened(connection, name string) error {
	at := filepath.Join(connection, copying(name))
	if _, err := f.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	to := filepath.Join(connection, copied(name))
	return errors.Join(f.root.RemoveAll(to), f.root.Rename(at, to))
}

// restore puts the copy in the place of a profile that does not open: it is the
// profile then. It reports false when there is none. No process of the profile runs,
// and the caller holds its lock.
func (f *folders) restore(connection, name string) (bool, error) {
	from, profile, aside := filepath.Join(connection, copied(name)), filepath.Join(connection, name), filepath.Join(connection, copying(name))
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
