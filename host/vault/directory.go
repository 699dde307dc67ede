package vault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/private"
)

// A directory is an open directory. Invariant: when it was opened it was accessible to this user
// alone and not reached by a link, except for the data directory itself, which is where the owner
// put it.
type directory struct {
	root *os.Root
	path string // for errors
}

func openData(path string) (*directory, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	return &directory{root, path}, nil
}

func (d *directory) Close() error { return d.root.Close() }

func (d *directory) join(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// open opens a subdirectory.
func (d *directory) open(name string) (*directory, error) {
	before, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := private.Check(before, d.join(name), fs.ModeDir, ErrUnsafe); err != nil {
		return nil, err
	}
	sub, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := sub.Stat(".")
	if err == nil {
		err = private.Same(before, now, d.join(name), ErrUnsafe)
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return &directory{sub, d.join(name)}, nil
}

// makeDir makes a subdirectory unless it exists.
func (d *directory) makeDir(name string) error {
	err := d.root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make directory of the vault: %w", err)
	}
	return d.sync()
}

// names returns the sorted names in d.
func (d *directory) names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// file checks a regular file in d without opening it.
func (d *directory) file(name string) (fs.FileInfo, error) {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	return fi, private.Check(fi, d.join(name), 0, ErrUnsafe)
}

// read reads a regular file in d of at most most bytes.
func (d *directory) read(name string, most int) ([]byte, fs.FileInfo, error) {
	f, now, err := private.OpenFile(d.root, name, d.join(name), os.O_RDONLY, ErrUnsafe)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b := make([]byte, most+1)
	n, err := io.ReadFull(f, b)
	if err == nil {
		clear(b)
		return nil, nil, fmt.Errorf("%w: %s is larger than %d bytes", ErrDamaged, d.join(name), most)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		clear(b)
		return nil, nil, err
	}
	return b[:n], now, nil
}

// temporary is the suffix of files being written; nothing else in a vault has it.
const temporary = ".tmp"

// write replaces a file in d atomically and durably. If set is not zero it becomes the file's
// modification time.
func (d *directory) write(name string, data []byte, set time.Time, reach func(string)) error {
	if _, err := d.file(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := name + temporary
	if err := d.writeNew(temp, data, set); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", d.join(name), err), d.discard(temp))
	}
	reach("after_tmp")
	if err := d.root.Rename(temp, name); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", d.join(name), err), d.discard(temp))
	}
	reach("after_rename")
	return d.sync()
}

func (d *directory) writeNew(name string, data []byte, set time.Time) error {
	if err := d.discard(name); err != nil {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && !set.IsZero() {
		err = d.root.Chtimes(name, set, set)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sweep removes what an interrupted write left.
func (d *directory) sweep() error {
	names, err := d.names()
	for _, n := range names {
		if strings.HasSuffix(n, temporary) {
			err = errors.Join(err, d.discard(n))
		}
	}
	return err
}

// discard removes a file in d, or a link in its place, if there is one.
func (d *directory) discard(name string) error {
	if err := d.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *directory) sync() error { return private.Sync(d.root) }
