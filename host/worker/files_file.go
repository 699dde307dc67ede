package worker

import (
	"io"
	"math"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
)

// A remoteFile is an open regular file. The offset is kept here; every call includes one.
//
// A small file of a read-only directory is received completely in the reply to open, and
// the host keeps nothing open: handle is 0 and the content is in cache. If it is still open
// when that is stale, it is opened again. If the name then leads to another file, the
// opened one has been removed, and its content stays as it was.
type remoteFile struct {
	experimentalsys.UnimplementedFile
	fs      *remoteFS
	path    string
	flags   abi.FileFlags
	append  bool
	closed  bool
	handle  uint32
	removed bool // handle is 0 and the file has been removed: the content is final

	cachedStat abi.FileStat
	fetchedAt  timestamp // of cachedStat
	cache      readCache
	offset     int64
}

var _ experimentalsys.File = (*remoteFile)(nil)

// setOpened takes the results of an open.
func (f *remoteFile) setOpened(p abi.FileOpenReply) {
	if f.handle = p.Handle; f.handle == 0 {
		f.fs.cachedCount++
	}
	f.cachedStat, f.fetchedAt = p.Stat, f.fs.now()
	f.cache = readCache{fetchedAt: f.fetchedAt}
	if len(p.Content) > 0 || p.Handle == 0 {
		f.cache.store(0, p.Content, len(p.Content) < abi.FileBlock)
	}
}

// renew refreshes a stale file without a handle. It never fails: the cached content is used
// if there is no newer one.
func (f *remoteFile) renew() {
	if f.handle != 0 || f.removed || f.fs.isFresh(f.fetchedAt) {
		return
	}
	p, errno := f.fs.open(f.path, f.flags)
	if errno == 0 && p.Stat.Kind == abi.FileRegular && p.Stat.Inode == f.cachedStat.Inode {
		f.fs.cachedCount--
		f.setOpened(p)
		return
	}
	f.removed = true
	if errno == 0 && p.Handle != 0 {
		ask(f.fs, abi.CallFileClose, abi.FileHandleRequest{Handle: p.Handle})
	}
}

// stat returns the file's stat, cached if recent.
func (f *remoteFile) stat() (abi.FileStat, experimentalsys.Errno) {
	if f.closed {
		return abi.FileStat{}, experimentalsys.EBADF
	}
	f.renew()
	if f.handle == 0 || f.fs.isFresh(f.fetchedAt) {
		return f.cachedStat, 0
	}
	st, errno := statReply(ask(f.fs, abi.CallFileStat, abi.FileStatRequest{Mount: f.fs.mount, Handle: f.handle}))
	if errno != 0 {
		return st, errno
	}
	f.cachedStat, f.fetchedAt = st, f.fs.now()
	return st, 0
}

// Stat describes the file.
func (f *remoteFile) Stat() (sys.Stat_t, experimentalsys.Errno) {
	st, errno := f.stat()
	return f.fs.stat(st), errno
}

// Dev returns the mount.
func (f *remoteFile) Dev() (uint64, experimentalsys.Errno) { return uint64(f.fs.mount) + 1, 0 }

// Ino returns the inode, which does not change while a file is open.
func (f *remoteFile) Ino() (sys.Inode, experimentalsys.Errno) { return f.cachedStat.Inode, 0 }

// IsDir is false.
func (f *remoteFile) IsDir() (bool, experimentalsys.Errno) { return false, 0 }

// IsAppend reports whether writes go to the end.
func (f *remoteFile) IsAppend() bool { return f.append }

// SetAppend says whether writes go to the end.
func (f *remoteFile) SetAppend(on bool) experimentalsys.Errno {
	f.append = on
	return 0
}

func (f *remoteFile) Seek(offset fileOffset, whence int) (fileOffset, experimentalsys.Errno) {
	if f.closed {
		return 0, experimentalsys.EBADF
	}
	base := int64(0)
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.offset
	case io.SeekEnd:
		st, errno := f.stat()
		if errno != 0 {
			return 0, errno
		}
		base = st.Size
	default:
		return 0, experimentalsys.EINVAL
	}
	if offset < -base || offset > math.MaxInt64-base {
		return 0, experimentalsys.EINVAL
	}
	f.offset = base + offset
	return f.offset, 0
}

// Read reads at the offset and moves it.
func (f *remoteFile) Read(buf []byte) (int, experimentalsys.Errno) {
	n, errno := f.Pread(buf, f.offset)
	f.offset += int64(n)
	return n, errno
}

// Pread fills buf, short only at the end of the file.
func (f *remoteFile) Pread(buf []byte, off int64) (int, experimentalsys.Errno) {
	switch {
	case f.closed, f.flags&abi.FileRead == 0:
		return 0, experimentalsys.EBADF
	case off < 0:
		return 0, experimentalsys.EINVAL
	}
	f.renew()
	if f.handle != 0 && !f.fs.isFresh(f.cache.fetchedAt) {
		f.cache.forget(f.fs.now())
	}
	done := 0
	for done < len(buf) {
		at := off + int64(done)
		if n := f.cache.copy(buf[done:], at); n > 0 {
			done += n
			continue
		}
		if f.cache.ended(at) || f.handle == 0 {
			break
		}
		n, errno := f.fetch(buf[done:], at)
		if errno != 0 {
			return done, errno
		}
		if n == 0 && f.cache.ended(at) {
			break
		}
		done += n
	}
	return done, 0
}

// fetch reads from the host: a large request directly into buf, returning the length, any
// other into the cache, returning 0.
func (f *remoteFile) fetch(buf []byte, at int64) (int, experimentalsys.Errno) {
	start, length := f.cache.plan(at, len(buf))
	reply, errno := ask(f.fs, abi.CallFileRead,
		abi.FileReadRequest{Handle: f.handle, Offset: start, Length: uint32(length)})
	if errno != 0 {
		return 0, errno
	}
	if len(reply) > length {
		return 0, experimentalsys.EIO
	}
	if start == at && len(buf) >= length {
		f.cache.recordFetch(start, len(reply), len(reply) < length)
		return copy(buf, reply), 0
	}
	f.cache.store(start, reply, len(reply) < length)
	return 0, 0
}

// Write writes at the offset, or at the end, and moves the offset.
func (f *remoteFile) Write(buf []byte) (int, experimentalsys.Errno) {
	n, end, errno := f.write(buf, f.offset, f.append)
	if f.append && n > 0 {
		f.offset = end
	} else {
		f.offset += int64(n)
	}
	return n, errno
}

// Pwrite writes at off.
func (f *remoteFile) Pwrite(buf []byte, off int64) (int, experimentalsys.Errno) {
	n, _, errno := f.write(buf, off, false)
	return n, errno
}

// write writes all of buf or returns an error. end is the size of the file after the last
// write.
func (f *remoteFile) write(buf []byte, off int64, atEnd bool) (done int, end int64, errno experimentalsys.Errno) {
	switch {
	case f.closed, f.flags&abi.FileWrite == 0:
		return 0, 0, experimentalsys.EBADF
	case off < 0:
		return 0, 0, experimentalsys.EINVAL
	}
	for done < len(buf) {
		q := abi.FileWriteRequest{Handle: f.handle, AtEnd: atEnd, Offset: off + int64(done)}
		q.Data = buf[done:min(done+abi.MaxFileChunk, len(buf))]
		reply, errno := change(f.fs, abi.CallFileWrite, q)
		if errno != 0 {
			return done, end, errno
		}
		p, err := abi.ParseFileWriteReply(reply)
		if err != nil || p.Count == 0 || int(p.Count) > len(q.Data) {
			return done, end, experimentalsys.EIO
		}
		done += int(p.Count)
		end = p.Size
	}
	return done, end, 0
}

// Truncate sets the size.
func (f *remoteFile) Truncate(size int64) experimentalsys.Errno {
	switch {
	case f.closed, f.flags&abi.FileWrite == 0:
		return experimentalsys.EBADF
	case size < 0:
		return experimentalsys.EINVAL
	}
	_, errno := change(f.fs, abi.CallFileTruncate, abi.FileTruncateRequest{Handle: f.handle, Size: size})
	return errno
}

// Sync makes writes durable.
func (f *remoteFile) Sync() experimentalsys.Errno {
	if f.closed {
		return experimentalsys.EBADF
	}
	if f.flags&abi.FileWrite == 0 {
		return 0
	}
	_, errno := ask(f.fs, abi.CallFileSync, abi.FileHandleRequest{Handle: f.handle})
	return errno
}

// Datasync is Sync.
func (f *remoteFile) Datasync() experimentalsys.Errno { return f.Sync() }

// Utimens sets times by the path the file was opened with.
func (f *remoteFile) Utimens(atim, mtim int64) experimentalsys.Errno {
	if f.closed {
		return experimentalsys.EBADF
	}
	return f.fs.Utimens(f.path, atim, mtim)
}

// Close releases the handle. A second Close does nothing.
func (f *remoteFile) Close() experimentalsys.Errno {
	if f.closed {
		return 0
	}
	f.closed = true
	f.cache = readCache{}
	if f.handle == 0 {
		f.fs.cachedCount--
		return 0
	}
	_, errno := ask(f.fs, abi.CallFileClose, abi.FileHandleRequest{Handle: f.handle})
	return errno
}
