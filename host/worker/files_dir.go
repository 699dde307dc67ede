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
	fs         *remoteFS
	path       string
	closed     bool
	ready      bool // opened at the host and, if handle is 0, read to its end
	handle     uint32
	cached     bool // its entries are cached and count in fs.kept
	rewind     bool // the next page is the first
	end        bool // no page after this one
	page       []abi.FileEntry
	cachedStat abi.FileStat
	fetchedAt  timestamp
}

var _ experimentalsys.File = (*remoteDir)(nil)

// setOpened takes the results of an open.
func (d *remoteDir) setOpened(p abi.FileOpenReply) experimentalsys.Errno {
	d.handle, d.cachedStat, d.fetchedAt = p.Handle, p.Stat, d.fs.now()
	d.ready, d.rewind, d.end, d.page = true, false, false, nil
	d.setCached(p.Handle == 0)
	if len(p.Content) == 0 && p.Handle != 0 {
		return 0
	}
	return d.setPage(p.Content)
}

// setCached sets whether the entries are cached instead of open at the host.
func (d *remoteDir) setCached(on bool) {
	switch {
	case on && !d.cached:
		d.fs.cachedCount++
	case !on && d.cached:
		d.fs.cachedCount--
	}
	d.cached = on
}

// setPage takes a page.
func (d *remoteDir) setPage(b []byte) experimentalsys.Errno {
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
		return d.setOpened(p)
	}
	reply, errno := ask(d.fs, abi.CallFileReadDir, abi.FileReadDirRequest{Handle: d.handle, Rewind: d.rewind})
	if errno != 0 {
		return errno
	}
	d.rewind = false
	return d.setPage(reply)
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
	if d.cachedStat.Kind != 0 && d.fs.isFresh(d.fetchedAt) {
		return d.cachedStat, 0
	}
	q := abi.FileStatRequest{Mount: d.fs.mount, Handle: d.handle}
	if d.handle == 0 {
		q.Path = d.path
	}
	st, errno := statReply(ask(d.fs, abi.CallFileStat, q))
	if errno == 0 {
		d.cachedStat, d.fetchedAt = st, d.fs.now()
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
	if d.cachedStat.Kind != 0 {
		return d.cachedStat.Inode, 0
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
	d.setCached(false)
	if d.handle == 0 {
		return 0
	}
	_, errno := ask(d.fs, abi.CallFileClose, abi.FileHandleRequest{Handle: d.handle})
	return errno
}
