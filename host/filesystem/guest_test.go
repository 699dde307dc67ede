package filesystem_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/store"
)

// The mounts of every test: a read-only root, a writable one, /tmp.
const (
	ro  = 0
	rw  = 1
	tmp = 2
)

// ok is what a call that works answers with.
var ok = answer{}

// An answer is an errno and its detail.
type answer struct {
	errno  abi.Errno
	detail abi.FileDetail
}

var (
	denied   = answer{errno: abi.EDENIED}
	absent   = answer{errno: abi.ENOENT}
	full     = answer{errno: abi.ENOSPC}
	tooBig   = answer{errno: abi.ETOOBIG}
	invalid  = answer{errno: abi.EINVAL}
	canceled = answer{errno: abi.ECANCELED}
	protocol = answer{errno: abi.EPROTO}
	exists   = answer{abi.EBUSY, abi.FileExists}
	notEmpty = answer{abi.EBUSY, abi.FileNotEmpty}
	notDir   = answer{abi.EINVAL, abi.FileNotDirectory}
	isDir    = answer{abi.EINVAL, abi.FileIsDirectory}
	loop     = answer{abi.EINVAL, abi.FileLoop}
	bad      = answer{abi.EINVAL, abi.FileBadHandle}
)

// A guest makes calls as a worker would.
type guest struct {
	t  testing.TB
	fs *filesystem.FS
	// host paths
	base, ro, rw, scratch string
}

// newGuest opens two fresh roots and a scratch directory.
func newGuest(t testing.TB, q filesystem.Quotas) *guest {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	g := &guest{t: t, base: base, ro: filepath.Join(base, "ro"), rw: filepath.Join(base, "rw"),
		scratch: filepath.Join(base, "run")}
	must(t, os.Mkdir(g.ro, 0o755))
	must(t, os.Mkdir(g.rw, 0o755))
	g.open(q)
	return g
}

// named is what the owner approved, as a manifest calls it.
func named(m store.Mount, name string) store.Mount {
	m.Name = name
	return m
}

// open opens the file system once the roots are as a test wants them.
func (g *guest) open(q filesystem.Quotas) {
	g.t.Helper()
	a, err := filesystem.Approve(g.ro, false, "")
	must(g.t, err)
	b, err := filesystem.Approve(g.rw, true, "")
	must(g.t, err)
	g.fs, err = filesystem.Open([]store.Mount{named(a, "data"), named(b, "out")}, g.scratch, q)
	must(g.t, err)
	g.t.Cleanup(func() {
		if err := g.fs.Close(); err != nil {
			g.t.Error(err)
		}
	})
}

type payload interface{ Append([]byte) []byte }

func (g *guest) call(c abi.Call, q payload) ([]byte, answer) {
	g.t.Helper()
	return g.callContext(g.t.Context(), c, q)
}

func (g *guest) callContext(ctx context.Context, c abi.Call, q payload) ([]byte, answer) {
	g.t.Helper()
	reply, errno := g.fs.Handle(ctx, c, q.Append(nil))
	if errno == abi.OK {
		return reply, ok
	}
	d, err := abi.ParseFileDetail(reply)
	must(g.t, err)
	return nil, answer{errno, d}
}

func (g *guest) openFile(mount uint32, path string, flags abi.FileFlags, ahead uint32) (abi.FileOpenReply, answer) {
	g.t.Helper()
	b, a := g.call(abi.CallFileOpen, abi.FileOpenRequest{Mount: mount, Flags: flags, Ahead: ahead, Path: path})
	if a != ok {
		return abi.FileOpenReply{}, a
	}
	p, err := abi.ParseFileOpenReply(b)
	must(g.t, err)
	p.Content = append([]byte(nil), p.Content...)
	return p, ok
}

// handle opens a file that has to open.
func (g *guest) handle(mount uint32, path string, flags abi.FileFlags) uint32 {
	g.t.Helper()
	p, a := g.openFile(mount, path, flags, 0)
	g.want("open "+path, a, ok)
	return p.Handle
}

func (g *guest) read(h uint32, off int64, n uint32) ([]byte, answer) {
	g.t.Helper()
	b, a := g.call(abi.CallFileRead, abi.FileReadRequest{Handle: h, Offset: off, Length: n})
	return append([]byte(nil), b...), a
}

func (g *guest) write(h uint32, off int64, data []byte) answer {
	g.t.Helper()
	_, a := g.call(abi.CallFileWrite, abi.FileWriteRequest{Handle: h, Offset: off, Data: data})
	return a
}

func (g *guest) truncate(h uint32, size int64) answer {
	g.t.Helper()
	_, a := g.call(abi.CallFileTruncate, abi.FileTruncateRequest{Handle: h, Size: size})
	return a
}

func (g *guest) close(h uint32) answer {
	g.t.Helper()
	_, a := g.call(abi.CallFileClose, abi.FileHandleRequest{Handle: h})
	return a
}

func (g *guest) path(c abi.Call, mount uint32, path string) answer {
	g.t.Helper()
	_, a := g.call(c, abi.FilePathRequest{Mount: mount, Path: path})
	return a
}

func (g *guest) stat(mount uint32, path string) (abi.FileStat, answer) {
	g.t.Helper()
	return g.parseStat(g.call(abi.CallFileStat, abi.FileStatRequest{Mount: mount, Path: path}))
}

func (g *guest) lstat(mount uint32, path string) (abi.FileStat, answer) {
	g.t.Helper()
	return g.parseStat(g.call(abi.CallFileLstat, abi.FilePathRequest{Mount: mount, Path: path}))
}

func (g *guest) parseStat(b []byte, a answer) (abi.FileStat, answer) {
	g.t.Helper()
	if a != ok {
		return abi.FileStat{}, a
	}
	st, err := abi.ParseFileStat(b)
	must(g.t, err)
	return st, ok
}

func (g *guest) rename(mount uint32, from, to string) answer {
	g.t.Helper()
	_, a := g.call(abi.CallFileRename, abi.FileRenameRequest{Mount: mount, From: from, To: to})
	return a
}

func (g *guest) times(mount uint32, path string) answer {
	g.t.Helper()
	_, a := g.call(abi.CallFileTimes, abi.FileTimesRequest{Mount: mount, Path: path, SetMtime: true, Mtime: 1e18})
	return a
}

// put makes a file of a guest, in pieces that a call can carry.
func (g *guest) put(mount uint32, path string, data []byte) answer {
	g.t.Helper()
	p, a := g.openFile(mount, path, abi.FileWrite|abi.FileCreate|abi.FileTruncate, 0)
	if a != ok {
		return a
	}
	defer g.close(p.Handle)
	for off := 0; off < len(data); off += abi.MaxFileChunk {
		if a := g.write(p.Handle, int64(off), data[off:min(off+abi.MaxFileChunk, len(data))]); a != ok {
			return a
		}
	}
	return ok
}

// list reads a directory through all its pages.
func (g *guest) list(mount uint32, path string) ([]abi.FileEntry, answer) {
	g.t.Helper()
	p, a := g.openFile(mount, path, abi.FileRead|abi.FileDirectory, 0)
	if a != ok {
		return nil, a
	}
	defer g.close(p.Handle)
	var all []abi.FileEntry
	for {
		b, a := g.call(abi.CallFileReadDir, abi.FileReadDirRequest{Handle: p.Handle})
		if a != ok {
			return all, a
		}
		page, err := abi.ParseFilePage(b)
		must(g.t, err)
		all = append(all, page.Entries...)
		if page.End {
			return all, ok
		}
	}
}

func (g *guest) want(what string, got, want answer) {
	g.t.Helper()
	if got != want {
		g.t.Errorf("%s: got %v %v, want %v %v", what, got.errno, got.detail, want.errno, want.detail)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}
