package filesystem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// FS serves the files of one run: the approved roots, then the guest's /tmp, numbered in
// that order, and the open handles.
//
// It serves one call at a time and is not safe for concurrent use: call Close after the
// last Handle has returned.
type FS struct {
	mounts  []*mount
	handles map[uint32]*handle
	last    uint32 // newest handle number
	scratch string // host path of /tmp
	escape  error  // the error of os.Root for a path that leaves it
	buf     []byte // reused for every reply, which is valid until the next call
}

// A mount is an open root. ledger is nil when it is read-only.
type mount struct {
	Mount
	root   *os.Root
	device uint64
	ledger *ledger
}

// Open opens the roots of a run, compares them with what was approved, and makes an empty
// /tmp for the guest below scratchDir, creating that if needed. It returns ErrMountChanged
// for a root that is another directory now. The caller closes the FS, which erases /tmp.
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

// openRoot opens an approved directory and verifies its identity.
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

// makeScratch makes the guest's /tmp. It refuses a directory that exists, because it may
// belong to something else.
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

// escapeError returns the error, unexported by package os, with which a Root refuses a path
// that leaves it. Should os ever use another one, such paths are still refused, as EIO.
func escapeError(root *os.Root) error {
	_, err := root.Lstat("..")
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return nil
}

// Mounts returns the mounts that the guest sees, indexed by the numbers that calls use.
func (f *FS) Mounts() []Mount {
	list := make([]Mount, len(f.mounts))
	for i, m := range f.mounts {
		list[i] = m.Mount
	}
	return list
}

// Close closes all handles and erases the guest's /tmp. Further calls do nothing.
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

// mount returns a mount by number. An unknown number means that the worker does not keep to
// the protocol.
func (f *FS) mount(n uint32) (*mount, error) {
	if int64(n) >= int64(len(f.mounts)) {
		return nil, refuse(abi.EPROTO)
	}
	return f.mounts[n], nil
}

// at returns a mount and a checked path in it.
func (f *FS) at(n uint32, path string) (*mount, guestPath, error) {
	m, err := f.mount(n)
	if err != nil {
		return nil, guestPath{}, err
	}
	p, err := parsePath(path)
	return m, p, err
}

// toChange is at for an operation that needs a writable mount.
func (f *FS) toChange(n uint32, path string) (*mount, guestPath, error) {
	m, p, err := f.at(n, path)
	if err == nil && !m.Writable {
		err = refuse(abi.EDENIED)
	}
	return m, p, err
}
