package worker

import (
	"io/fs"
	"strings"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
)

// A remoteFS is one directory of the guest, served by calls to the host, which checks
// paths, permissions and quotas. To save round trips it reads ahead and caches results.
//
// Cached results are at most staleAfter old, and never older than the guest's last change
// through the same mount. Only the guest's goroutine uses it.
type remoteFS struct {
	experimentalsys.UnimplementedFS
	host        caller
	mount       uint32
	request     []byte // reused
	changes     uint64 // number of changes through this mount
	cachedCount int    // cached completely, so not open at the host
}

var _ experimentalsys.FS = (*remoteFS)(nil)

const (
	// staleAfter is how long a cached stat or block is used.
	staleAfter = time.Second
	// maxCached bounds the cached files, and so the worker's memory. Beyond it files are
	// opened without content and count against the host's limit on handles.
	maxCached = 256
)

// newRemoteFS returns the file system of the mount with this number.
func newRemoteFS(c caller, mount uint32) experimentalsys.FS {
	return &remoteFS{host: c, mount: mount}
}

// payload is a request of abi/file.go.
type payload interface{ Append([]byte) []byte }

// ask makes a call. The reply is valid until the next one.
func ask[Q payload](r *remoteFS, c abi.Call, q Q) ([]byte, experimentalsys.Errno) {
	r.request = q.Append(r.request[:0])
	reply, errno := r.host.call(c, r.request)
	if errno != abi.OK {
		return nil, fileErrno(errno, reply)
	}
	return reply, 0
}

// change makes a call that invalidates all cached results.
func change[Q payload](r *remoteFS, c abi.Call, q Q) ([]byte, experimentalsys.Errno) {
	r.changes++
	return ask(r, c, q)
}

// fileErrno translates an errno. Those that the engine does not know are EIO here, and
// corrected in wasi.go.
func fileErrno(e abi.Errno, reply []byte) experimentalsys.Errno {
	if detail, err := abi.ParseFileDetail(reply); err == nil {
		switch detail {
		case abi.FileExists:
			return experimentalsys.EEXIST
		case abi.FileNotEmpty:
			return experimentalsys.ENOTEMPTY
		case abi.FileNotDirectory:
			return experimentalsys.ENOTDIR
		case abi.FileIsDirectory:
			return experimentalsys.EISDIR
		case abi.FileLoop:
			return experimentalsys.ELOOP
		case abi.FileBadHandle:
			return experimentalsys.EBADF
		}
	}
	switch e {
	case abi.EDENIED:
		return experimentalsys.EACCES
	case abi.ENOENT:
		return experimentalsys.ENOENT
	case abi.EINVAL:
		return experimentalsys.EINVAL
	case abi.ENOTSUP:
		return experimentalsys.ENOTSUP
	}
	return experimentalsys.EIO
}

// inMount returns path relative to the mount. The engine has checked the path, but joins a
// name to an open root directory as "/name". Paths too long for the host are refused here.
func inMount(path string) (string, experimentalsys.Errno) {
	path = strings.TrimLeft(path, "/")
	switch {
	case path == "" || path == "./":
		return ".", 0
	case len(path) > abi.MaxFilePath:
		return "", experimentalsys.EACCES
	}
	return path, 0
}

// OpenFile opens a path with one call, whose reply has the stat and the beginning of the
// content. The mount's own directory is opened without a call, because the engine takes a
// failure there for a bug.
func (r *remoteFS) OpenFile(path string, flag experimentalsys.Oflag,
	_ fs.FileMode) (experimentalsys.File, experimentalsys.Errno) {
	path, errno := inMount(path)
	if errno != 0 {
		return nil, errno
	}
	flags := fileFlags(flag)
	if path == "." {
		if flags&(abi.FileWrite|abi.FileCreate|abi.FileTruncate) != 0 {
			return nil, experimentalsys.EISDIR
		}
		return &remoteDir{fs: r, path: path}, 0
	}
	reply, errno := r.open(path, flags)
	if errno != 0 {
		return nil, errno
	}
	if reply.Stat.Kind == abi.FileFolder {
		d := &remoteDir{fs: r, path: path}
		return d, d.setOpened(reply)
	}
	f := &remoteFile{fs: r, path: path, flags: flags, append: flag&experimentalsys.O_APPEND != 0}
	f.setOpened(reply)
	return f, 0
}

// open opens a file and requests as much of its content as is useful.
func (r *remoteFS) open(path string, flags abi.FileFlags) (abi.FileOpenReply, experimentalsys.Errno) {
	q := abi.FileOpenRequest{Mount: r.mount, Flags: flags, Path: path}
	if flags&abi.FileRead != 0 && flags&(abi.FileWrite|abi.FileTruncate) == 0 && r.cachedCount < maxCached {
		q.Ahead = abi.FileBlock
	}
	if flags&(abi.FileCreate|abi.FileTruncate) != 0 {
		r.changes++
	}
	b, errno := ask(r, abi.CallFileOpen, q)
	if errno != 0 {
		return abi.FileOpenReply{}, errno
	}
	reply, err := abi.ParseFileOpenReply(b)
	if err != nil {
		return abi.FileOpenReply{}, experimentalsys.EIO
	}
	return reply, 0
}

// fileFlags translates open flags. Appending is handled here, by the offset of each write.
func fileFlags(flag experimentalsys.Oflag) abi.FileFlags {
	flags := abi.FileRead
	switch {
	case flag&experimentalsys.O_RDWR != 0:
		flags = abi.FileRead | abi.FileWrite
	case flag&experimentalsys.O_WRONLY != 0:
		flags = abi.FileWrite
	}
	for _, t := range []struct {
		from experimentalsys.Oflag
		to   abi.FileFlags
	}{
		{experimentalsys.O_CREAT, abi.FileCreate},
		{experimentalsys.O_EXCL, abi.FileExclusive},
		{experimentalsys.O_TRUNC, abi.FileTruncate},
		{experimentalsys.O_DIRECTORY, abi.FileDirectory},
		{experimentalsys.O_NOFOLLOW, abi.FileNoFollow},
		{experimentalsys.O_SYNC | experimentalsys.O_DSYNC, abi.FileSync},
	} {
		if flag&t.from != 0 {
			flags |= t.to
		}
	}
	return flags
}

// Stat describes a file, following symlinks as far as the host does.
func (r *remoteFS) Stat(path string) (sys.Stat_t, experimentalsys.Errno) {
	st, errno := r.lookup(abi.CallFileStat, path)
	return r.stat(st), errno
}

// Lstat does not follow symlinks.
func (r *remoteFS) Lstat(path string) (sys.Stat_t, experimentalsys.Errno) {
	st, errno := r.lookup(abi.CallFileLstat, path)
	return r.stat(st), errno
}

func (r *remoteFS) lookup(c abi.Call, path string) (abi.FileStat, experimentalsys.Errno) {
	path, errno := inMount(path)
	if errno != 0 {
		return abi.FileStat{}, errno
	}
	if c == abi.CallFileStat {
		return statReply(ask(r, c, abi.FileStatRequest{Mount: r.mount, Path: path}))
	}
	return statReply(ask(r, c, abi.FilePathRequest{Mount: r.mount, Path: path}))
}

func statReply(b []byte, errno experimentalsys.Errno) (abi.FileStat, experimentalsys.Errno) {
	if errno != 0 {
		return abi.FileStat{}, errno
	}
	st, err := abi.ParseFileStat(b)
	if err != nil {
		return abi.FileStat{}, experimentalsys.EIO
	}
	return st, 0
}

// stat translates a stat. The device is the mount, so that device and inode identify a
// file.
func (r *remoteFS) stat(s abi.FileStat) sys.Stat_t {
	return sys.Stat_t{
		Dev: uint64(r.mount) + 1, Ino: s.Inode, Mode: fileMode(s.Kind), Nlink: uint64(s.Links), Size: s.Size,
		Atim: s.Mtime, Mtim: s.Mtime, Ctim: s.Ctime,
	}
}

func fileMode(k abi.FileKind) fs.FileMode {
	switch k {
	case abi.FileRegular:
		return 0o600
	case abi.FileFolder:
		return fs.ModeDir | 0o700
	case abi.FileSymlink:
		return fs.ModeSymlink | 0o700
	}
	return fs.ModeIrregular
}

// Mkdir makes a directory of the host's mode.
func (r *remoteFS) Mkdir(path string, _ fs.FileMode) experimentalsys.Errno {
	return r.entry(abi.CallFileMkdir, path)
}

// Unlink removes a file.
func (r *remoteFS) Unlink(path string) experimentalsys.Errno {
	return r.entry(abi.CallFileUnlink, path)
}

// Rmdir removes an empty directory.
func (r *remoteFS) Rmdir(path string) experimentalsys.Errno {
	return r.entry(abi.CallFileRmdir, path)
}

func (r *remoteFS) entry(c abi.Call, path string) experimentalsys.Errno {
	path, errno := inMount(path)
	if errno != 0 {
		return errno
	}
	_, errno = change(r, c, abi.FilePathRequest{Mount: r.mount, Path: path})
	return errno
}

// Rename moves a file or directory within the mount.
func (r *remoteFS) Rename(from, to string) experimentalsys.Errno {
	from, errno := inMount(from)
	if errno != 0 {
		return errno
	}
	if to, errno = inMount(to); errno != 0 {
		return errno
	}
	_, errno = change(r, abi.CallFileRename, abi.FileRenameRequest{Mount: r.mount, From: from, To: to})
	return errno
}

// Utimens sets times.
func (r *remoteFS) Utimens(path string, atim, mtim int64) experimentalsys.Errno {
	path, errno := inMount(path)
	if errno != 0 {
		return errno
	}
	q := abi.FileTimesRequest{Mount: r.mount, Path: path}
	if q.SetAtime = atim != experimentalsys.UTIME_OMIT; q.SetAtime {
		q.Atime = atim
	}
	if q.SetMtime = mtim != experimentalsys.UTIME_OMIT; q.SetMtime {
		q.Mtime = mtim
	}
	_, errno = change(r, abi.CallFileTimes, q)
	return errno
}

// Link, Symlink, Readlink and Chmod are not for guests.

// Link is refused.
func (*remoteFS) Link(string, string) experimentalsys.Errno { return experimentalsys.ENOTSUP }

// Symlink is refused.
func (*remoteFS) Symlink(string, string) experimentalsys.Errno { return experimentalsys.ENOTSUP }

// Readlink is refused.
func (*remoteFS) Readlink(string) (string, experimentalsys.Errno) {
	return "", experimentalsys.ENOTSUP
}

// Chmod is refused.
func (*remoteFS) Chmod(string, fs.FileMode) experimentalsys.Errno { return experimentalsys.ENOTSUP }

// A fileOffset is an int64. The name keeps go vet from comparing Seek, which returns an
// errno, with io.Seeker.
type fileOffset = int64

// A timestamp says when a result was cached.
type timestamp struct {
	at      time.Time
	changes uint64
}

func (r *remoteFS) now() timestamp { return timestamp{at: time.Now(), changes: r.changes} }

// isFresh reports whether a result cached then is still valid.
func (r *remoteFS) isFresh(m timestamp) bool {
	return m.changes == r.changes && time.Since(m.at) < staleAfter
}
