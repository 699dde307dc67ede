package filesystem

import (
	"io/fs"
	"time"

	"github.com/sluicehost/sluice/abi"
)

func (f *FS) stat(q abi.FileStatRequest) ([]byte, error) {
	if q.Handle == 0 {
		return f.look(q.Mount, q.Path, true)
	}
	h, err := f.get(q.Handle, 0)
	if err != nil {
		return nil, err
	}
	fi, err := h.file.Stat()
	if err != nil {
		return nil, err
	}
	return describe(fi).Append(f.reply(0)), nil
}

func (f *FS) lstat(q abi.FilePathRequest) ([]byte, error) {
	return f.look(q.Mount, q.Path, false)
}

// look describes the file at a path. As usual, a trailing slash follows symlinks and
// requires a directory.
func (f *FS) look(mount uint32, path string, follow bool) ([]byte, error) {
	m, p, err := f.at(mount, path)
	if err != nil {
		return nil, err
	}
	fi, err := m.find(p, follow || p.slash)
	if err != nil {
		return nil, err
	}
	if p.slash && !fi.IsDir() {
		return nil, errNotDirectory
	}
	return describe(fi).Append(f.reply(0)), nil
}

func (f *FS) mkdir(q abi.FilePathRequest) ([]byte, error) {
	m, p, err := f.toChange(q.Mount, q.Path)
	if err != nil {
		return nil, err
	}
	if p.depth == 0 {
		return nil, errExists
	}
	if err := m.hasParent(p); err != nil {
		return nil, err
	}
	if _, err := m.root.Lstat(p.name); err == nil {
		return nil, errExists
	}
	if err := m.ledger.depth(p.depth); err != nil {
		return nil, err
	}
	if err := m.ledger.roomForDir(); err != nil {
		return nil, err
	}
	if err := m.root.Mkdir(p.name, 0o700); err != nil {
		return nil, err
	}
	fi, err := m.root.Lstat(p.name)
	if err != nil {
		return nil, err
	}
	id, _ := identify(fi)
	m.ledger.dirs[id] = struct{}{}
	return nil, nil
}

// unlink removes the name of a regular file or a symlink. Guests cannot remove FIFOs,
// sockets and devices.
func (f *FS) unlink(q abi.FilePathRequest) ([]byte, error) {
	return f.remove(q, func(kind abi.FileKind, p guestPath) error {
		switch {
		case kind == abi.FileFolder:
			return errIsDirectory
		case kind == abi.FileSpecial:
			return refuse(abi.EDENIED)
		case p.slash:
			return errNotDirectory
		}
		return nil
	})
}

// rmdir removes an empty directory.
func (f *FS) rmdir(q abi.FilePathRequest) ([]byte, error) {
	return f.remove(q, func(kind abi.FileKind, _ guestPath) error {
		if kind != abi.FileFolder {
			return errNotDirectory
		}
		return nil
	})
}

func (f *FS) remove(q abi.FilePathRequest, allowed func(abi.FileKind, guestPath) error) ([]byte, error) {
	m, p, err := f.toChange(q.Mount, q.Path)
	if err != nil {
		return nil, err
	}
	if p.depth == 0 {
		return nil, refuse(abi.EDENIED)
	}
	fi, err := m.find(p, false)
	if err != nil {
		return nil, err
	}
	if err := allowed(kindOf(fi.Mode()), p); err != nil {
		return nil, err
	}
	if err := m.root.Remove(p.name); err != nil {
		return nil, err
	}
	f.removed(m, fi)
	return nil, nil
}

func (f *FS) removed(m *mount, fi fs.FileInfo) {
	id, _ := identify(fi)
	m.ledger.removed(fi, f.holds(id))
}

// times sets the times of a regular file with one name or of a directory.
func (f *FS) times(q abi.FileTimesRequest) ([]byte, error) {
	m, p, err := f.toChange(q.Mount, q.Path)
	if err != nil {
		return nil, err
	}
	fi, err := m.find(p, true)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() && (!fi.Mode().IsRegular() || links(fi) > 1) {
		return nil, refuse(abi.EDENIED)
	}
	if p.slash && !fi.IsDir() {
		return nil, errNotDirectory
	}
	var atime, mtime time.Time // zero leaves a time as it is
	if q.SetAtime {
		atime = time.Unix(0, q.Atime)
	}
	if q.SetMtime {
		mtime = time.Unix(0, q.Mtime)
	}
	return nil, m.root.Chtimes(p.name, atime, mtime)
}
