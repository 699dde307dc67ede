package worker

import (
	"io"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
)

// A remoteDir is an open directory. The reply to open has its first page; if that is also
// the last, the host keeps nothing open and handle is 0.
type remoteDir struct {
	experimentalsys.DirFile
	fs     *remoteFS
	path   string
	closed bool
	ready  bool // opened at the host and, if handle is 0, read to its end
	handle uint32
	kept   bool // its entries are cached and count in fs.kept
	rewind bool // the next page is the first
	end    bool // no page after this one
	page   []abi.FileEntry
	known  abi.FileStat
	learnt moment
}

var _ experimentalsys.File = (*remoteDir)(nil)

// opened takes the results of an open.
func (d *remoteDir) opened(p abi.FileOpenReply) experimentalsys.Errno {
	d.handle, d.known, d.learnt = p.Handle, p.Stat, d.fs.now()
	d.ready, d.rewind, d.end, d.page = true, false, false, nil
	d.keep(p.Handle == 0)
	if len(p.Content) == 0 && p.Handle != 0 {
		return 0
	}
	return d.turn(p.Content)
}

// keep sets whether the entries are cached instead of open at the host.
func (d *remoteDir) keep(on bool) {
	switch {
	case on && !d.kept:
		d.fs.kept++
	case !on && d.kept:
		d.fs.kept--
	}
	d.kept = on
}

// turn takes a page.
func (d *remoteDir) turn(b []byte) experimentalsys.Errno {
	page, err := abi.ParseFilePage(b)
	if err != nil || d.handle == 0 && !page.End {
		return experimentalsys.EIO
	}
	d.page, d.end = page.Entries, page.End
	return 0
}

// advance gets the next page.
func (d *remoteDir) advance() experimentalsys.Errno {
	if !d.ready {
		p, errno := d.fs.open(d.path, abi.FileRead|abi.FileDirectory)
		if errno != 0 {
			return errno
		}
		return d.opened(p)
	}
	reply, errno := ask(d.fs, abi.CallFileReadDir, abi.FileReadDirRequest{Handle: d.handle, Rewind: d.rewind})
	if errno != 0 {
		return errno
	}
	d.rewind = false
	return d.turn(reply)
}

// Readdir returns up to n entries, fewer only at the end; n <= 0 returns all.
func (d *remoteDir) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if d.closed {
		return nil, experimentalsys.EBADF
	}
	var list []experimentalsys.Dirent
	for n <= 0 || len(list) < n {
		if len(d.page) == 0 {
			if d.ready && d.end {
				break
			}
			if errno := d.advance(); errno != 0 {
				return list, errno
			}
			continue
		}
		e := d.page[0]
		d.page = d.page[1:]
		list = append(list, experimentalsys.Dirent{Ino: e.Inode, Name: e.Name, Type: fileMode(e.Kind).Type()})
	}
	return list, 0
}

// Seek restarts the listing, the only seek that directories support.
func (d *remoteDir) Seek(offset fileOffset, whence int) (fileOffset, experimentalsys.Errno) {
	switch {
	case d.closed:
		return 0, experimentalsys.EBADF
	case offset != 0 || whence != io.SeekStart:
		return 0, experimentalsys.EINVAL
	}
	d.page, d.end = nil, false
	d.rewind = true
	d.ready = d.handle != 0
	return 0, 0
}

// stat returns the directory's stat, cached if recent.
func (d *remoteDir) stat() (abi.FileStat, experimentalsys.Errno) {
	if d.closed {
		return abi.FileStat{}, experimentalsys.EBADF
	}
	if d.known.Kind != 0 && d.fs.holds(d.learnt) {
		return d.known, 0
	}
	q := abi.FileStatRequest{Mount: d.fs.mount, Handle: d.handle}
	if d.handle == 0 {
		q.Path = d.path
	}
	st, errno := statReply(ask(d.fs, abi.CallFileStat, q))
	if errno == 0 {
		d.known, d.learnt = st, d.fs.now()
	}
	return st, errno
}

// Stat describes the directory.
func (d *remoteDir) Stat() (sys.Stat_t, experimentalsys.Errno) {
	st, errno := d.stat()
	return d.fs.stat(st), errno
}

// Dev returns the mount.
func (d *remoteDir) Dev() (uint64, experimentalsys.Errno) { return uint64(d.fs.mount) + 1, 0 }

// Ino returns the inode.
func (d *remoteDir) Ino() (sys.Inode, experimentalsys.Errno) {
	if d.known.Kind != 0 {
		return d.known.Inode, 0
	}
	st, errno := d.stat()
	return st.Inode, errno
}

// Sync does nothing, because the host manages names.
func (d *remoteDir) Sync() experimentalsys.Errno { return 0 }

// Datasync does nothing.
func (d *remoteDir) Datasync() experimentalsys.Errno { return 0 }

// Utimens sets times by path.
func (d *remoteDir) Utimens(atim, mtim int64) experimentalsys.Errno {
	return d.fs.Utimens(d.path, atim, mtim)
}

// Close releases the handle. A second Close does nothing.
func (d *remoteDir) Close() experimentalsys.Errno {
	if d.closed {
		return 0
	}
	d.closed, d.page = true, nil
	d.keep(false)
	if d.handle == 0 {
		return 0
	}
	_, errno := ask(d.fs, abi.CallFileClose, abi.FileHandleRequest{Handle: d.handle})
	return errno
}
