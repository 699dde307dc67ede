package filesystem

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/sluicehost/sluice/abi"
)

// openTries is how often an open is tried while the directory changes: a program that
// replaces a file by renaming is no attack.
const openTries = 3

// find returns the file at a path, following symlinks inside the root if asked. Files on
// other devices do not exist for the guest.
func (m *mount) find(p guestPath, follow bool) (fs.FileInfo, error) {
	fi, err := m.root.Lstat(p.name)
	if err == nil && follow && fi.Mode().Type() == fs.ModeSymlink {
		fi, err = m.root.Stat(p.name)
	}
	if err != nil {
		return nil, err
	}
	if !m.shows(fi) {
		return nil, refuse(abi.ENOENT)
	}
	return fi, nil
}

// shows reports whether a file is on the device of the root.
func (m *mount) shows(fi fs.FileInfo) bool {
	id, ok := identify(fi)
	return ok && id.device == m.device
}

// openChanges are the flags that require a writable root.
const openChanges = abi.FileWrite | abi.FileCreate | abi.FileTruncate

func (f *FS) open(ctx context.Context, q abi.FileOpenRequest) ([]byte, error) {
	m, p, err := f.at(q.Mount, q.Path)
	if err != nil {
		return nil, err
	}
	if q.Flags&openChanges != 0 && !m.Writable {
		return nil, refuse(abi.EDENIED)
	}
	if len(f.handles) >= abi.MaxFileHandles {
		return nil, refuse(abi.ETOOBIG)
	}
	for range openTries {
		h, fi, err := m.openOnce(p, q.Flags)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if q.Flags&abi.FileTruncate != 0 {
			if fi, err = h.resize(0); err != nil {
				h.file.Close()
				return nil, err
			}
		}
		return f.opened(ctx, h, fi, int(q.Ahead))
	}
	return nil, refuse(abi.EDENIED)
}

// errChanged says that a file was replaced while it was being opened.
var errChanged = errors.New("changed while it was opened")

// openOnce makes one attempt to open a file: inspect it, open it without blocking, and
// inspect the opened file.
func (m *mount) openOnce(p guestPath, flags abi.FileFlags) (*handle, fs.FileInfo, error) {
	seen, err := m.find(p, flags&abi.FileNoFollow == 0)
	if errors.Is(err, fs.ErrNotExist) && flags&abi.FileCreate != 0 {
		return m.create(p, flags)
	}
	if err != nil {
		return nil, nil, err
	}
	if flags&abi.FileCreate != 0 && flags&abi.FileExclusive != 0 {
		return nil, nil, errExists
	}
	mode, err := openMode(seen, p, flags)
	if err != nil {
		return nil, nil, err
	}
	file, err := m.root.OpenFile(p.name, mode, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errChanged
		}
		return nil, nil, err
	}
	fi, err := m.check(file, seen, flags)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return m.handle(file, fi, flags), fi, nil
}

// openMode returns how to open a file of this type, or refuses it.
func openMode(seen fs.FileInfo, p guestPath, flags abi.FileFlags) (int, error) {
	mode := os.O_RDONLY
	switch flags & (abi.FileRead | abi.FileWrite) {
	case abi.FileRead | abi.FileWrite:
		mode = os.O_RDWR
	case abi.FileWrite:
		mode = os.O_WRONLY
	}
	if flags&abi.FileTruncate != 0 && mode == os.O_RDONLY {
		mode = os.O_RDWR
	}
	if flags&abi.FileSync != 0 {
		mode |= os.O_SYNC
	}
	switch kindOf(seen.Mode()) {
	case abi.FileFolder:
		if flags&openChanges != 0 {
			return 0, errIsDirectory
		}
		return mode | openSafely | openDirectory, nil
	case abi.FileRegular:
		if p.slash || flags&abi.FileDirectory != 0 {
			return 0, errNotDirectory
		}
		return mode | openSafely, nil
	case abi.FileSymlink:
		return 0, errLoop
	default:
		return 0, refuse(abi.EDENIED)
	}
}

// check compares the opened file with the inspected one, and refuses writing to a file with
// several names.
func (m *mount) check(file *os.File, seen fs.FileInfo, flags abi.FileFlags) (fs.FileInfo, error) {
	fi, err := file.Stat()
	if err != nil {
		return nil, err
	}
	want, _ := identify(seen)
	if got, ok := identify(fi); !ok || got != want {
		return nil, errChanged
	}
	if flags&openChanges != 0 && links(fi) > 1 {
		return nil, refuse(abi.EDENIED)
	}
	return fi, nil
}

// create makes a regular file with mode 0600. If the name exists by now, even as a dangling
// symlink, it returns errChanged for another try.
func (m *mount) create(p guestPath, flags abi.FileFlags) (*handle, fs.FileInfo, error) {
	if p.slash || flags&abi.FileDirectory != 0 {
		return nil, nil, errIsDirectory
	}
	if err := m.hasParent(p); err != nil {
		return nil, nil, err
	}
	if err := m.ledger.depth(p.depth); err != nil {
		return nil, nil, err
	}
	if err := m.ledger.roomForFile(); err != nil {
		return nil, nil, err
	}
	mode := os.O_RDWR | os.O_CREATE | os.O_EXCL | openSafely
	if flags&abi.FileSync != 0 {
		mode |= os.O_SYNC
	}
	file, err := m.root.OpenFile(p.name, mode, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if flags&abi.FileExclusive != 0 {
			return nil, nil, errExists
		}
		return nil, nil, errChanged
	}
	if err != nil {
		return nil, nil, err
	}
	fi, err := file.Stat()
	if err == nil && !m.shows(fi) {
		err = refuse(abi.ENOENT)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	m.ledger.made(fi)
	return m.handle(file, fi, flags), fi, nil
}

// hasParent checks that the parent of a new entry is a directory that the guest can see.
func (m *mount) hasParent(p guestPath) error {
	fi, err := m.find(p.parent(), true)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return errNotDirectory
	}
	return nil
}

func (m *mount) handle(file *os.File, fi fs.FileInfo, flags abi.FileFlags) *handle {
	id, _ := identify(fi)
	return &handle{mount: m, file: file, id: id, flags: flags}
}

// opened replies to an open, with the requested beginning of the content. It closes a file
// whose reply is complete: a directory with one page, or a small file of a read-only root.
func (f *FS) opened(ctx context.Context, h *handle, fi fs.FileInfo, ahead int) ([]byte, error) {
	b := f.reply(abi.FileOpenHeader + ahead)[:abi.FileOpenHeader]
	keep := true
	var err error
	switch {
	case ahead == 0:
	case h.dir():
		b, keep, err = h.page(ctx, b)
	case h.flags&abi.FileRead != 0:
		b, keep, err = h.begin(b, fi.Size(), ahead)
	}
	if err != nil {
		h.file.Close()
		return nil, err
	}
	f.buf = b
	reply := abi.FileOpenReply{Stat: describe(fi), Content: b[abi.FileOpenHeader:]}
	if keep {
		reply.Handle = f.take(h)
	} else if err := h.file.Close(); err != nil {
		return nil, err
	}
	return reply.Append(b[:0]), nil // the content is already in place
}

// begin appends the first bytes of a file, and reports whether there is or can be more. It
// reads even a file of size 0, because some file systems report a wrong size.
func (h *handle) begin(b []byte, size int64, ahead int) ([]byte, bool, error) {
	if size > 0 {
		ahead = int(min(int64(ahead), size))
	}
	n, err := h.file.ReadAt(b[len(b):len(b)+ahead], 0)
	if err != nil && err != io.EOF {
		return b, true, err
	}
	return b[:len(b)+n], h.mount.Writable || int64(n) != size, nil
}
