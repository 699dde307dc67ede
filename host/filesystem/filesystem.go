package filesystem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// FS holds the files of one run: the approved roots, then the guest's /tmp,
// numbered in that order, and what the guest has open in them.
//
// It serves one guest, one call at a time, and is not safe for concurrent
// use: Close comes after the last Handle returned.
type FS struct {
	mounts  []*mount
	handles map[uint32]*handle
	last    uint32 // newest handle number
	scratch string // host path of /tmp
	escape  error  // what os.Root says when a path leaves it
	buf     []byte // the reply; reused, so a caller has it until the next call
}

// A mount is an open root. ledger is nil when it is read-only.
type mount struct {
	Mount
	root   *os.Root
	device uint64
	ledger *ledger
}

// Open opens the roots of a run, compares each with what was approved, and
// makes an empty /tmp for the guest under scratchDir, which is made if missing.
// A root that is no longer the same directory is ErrMountChanged. The
// caller closes the FS, which erases the /tmp.
func Open(roots []store.Mount, scratchDir string, q Quotas) (*FS, error) {
	if err := q.Check(); err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	if err := checkGuestPaths(roots); err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	f := &FS{handles: map[uint32]*handle{}}
	for _, r := range roots {
		m, err := openRoot(r, q.Root)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.mounts = append(f.mounts, m)
	}
	if err := f.makeScratch(scratchDir, q.Scratch); err != nil {
		f.Close()
		return nil, fmt.Errorf("open files: %w", err)
	}
	return f, nil
}

// openRoot opens an approved directory and makes sure that it is the one.
func openRoot(r store.Mount, q Quota) (*mount, error) {
	changed := func(why string) error {
		return fmt.Errorf("%w: %s %s: approve it again", ErrMountChanged, r.Path, why)
	}
	if fi, err := os.Lstat(r.Path); err != nil {
		return nil, changed("cannot be opened")
	} else if !fi.IsDir() {
		return nil, changed("is no directory any more")
	}
	root, err := os.OpenRoot(r.Path)
	if err != nil {
		return nil, changed("cannot be opened")
	}
	fi, err := root.Lstat(".")
	if err != nil {
		root.Close()
		return nil, changed("cannot be read")
	}
	id, ok := identify(fi)
	if !ok || id.device != r.Device || id.inode != r.Inode {
		root.Close()
		return nil, changed("is another directory than the one that was approved")
	}
	m := &mount{Mount: Mount{Path: mountPoint(r.Name), Writable: r.Writable}, root: root, device: id.device}
	if r.Writable {
		m.ledger = newLedger(q)
	}
	return m, nil
}

// makeScratch makes the guest's /tmp. A directory that is there already is
// not emptied but refused: it is somebody's.
func (f *FS) makeScratch(dir string, q Quota) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make scratch: %w", err)
	}
	path := filepath.Join(dir, "tmp")
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("make scratch: %w", err)
	}
	f.scratch = path
	root, err := os.OpenRoot(path)
	if err != nil {
		return fmt.Errorf("open scratch: %w", err)
	}
	m := &mount{Mount: Mount{Path: ScratchPath, Writable: true}, root: root, ledger: newLedger(q)}
	f.mounts = append(f.mounts, m)
	fi, err := root.Lstat(".")
	if err != nil {
		return fmt.Errorf("open scratch: %w", err)
	}
	id, ok := identify(fi)
	if !ok {
		return errors.New("open scratch: this system has no device and inode numbers")
	}
	m.device = id.device
	f.escape = escapeError(root)
	return nil
}

// escapeError finds the error, unexported by package os, with which a Root
// refuses a path that leaves it. Should it ever be another one, such a path is
// still refused, as EIO.
func escapeError(root *os.Root) error {
	_, err := root.Lstat("..")
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return nil
}

// Mounts returns what the guest sees; the index of a mount is the number that
// calls name it by.
func (f *FS) Mounts() []Mount {
	list := make([]Mount, len(f.mounts))
	for i, m := range f.mounts {
		list[i] = m.Mount
	}
	return list
}

// Close closes what the guest left open and erases its /tmp. A second Close
// does nothing.
func (f *FS) Close() error {
	for n := range f.handles {
		f.drop(n)
	}
	for _, m := range f.mounts {
		m.root.Close()
	}
	f.mounts = nil
	if f.scratch == "" {
		return nil
	}
	if err := os.RemoveAll(f.scratch); err != nil {
		return fmt.Errorf("erase scratch: %w", err)
	}
	f.scratch = ""
	return nil
}

// mount returns a mount by number. A number that was never announced is a
// worker that makes things up.
func (f *FS) mount(n uint32) (*mount, error) {
	if int64(n) >= int64(len(f.mounts)) {
		return nil, refuse(abi.EPROTO)
	}
	return f.mounts[n], nil
}

// at finds a mount and checks a path in it.
func (f *FS) at(n uint32, path string) (*mount, guestPath, error) {
	m, err := f.mount(n)
	if err != nil {
		return nil, guestPath{}, err
	}
	p, err := parsePath(path)
	return m, p, err
}

// toChange is at for an operation that changes something.
func (f *FS) toChange(n uint32, path string) (*mount, guestPath, error) {
	m, p, err := f.at(n, path)
	if err == nil && !m.Writable {
		err = refuse(abi.EDENIED)
	}
	return m, p, err
}
