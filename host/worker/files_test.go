package worker

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

const (
	data = 0
	out  = 1
)

// What programs tell apart.
func TestFileErrno(t *testing.T) {
	for _, c := range []struct {
		errno abi.Errno
		reply []byte
		want  experimentalsys.Errno
	}{
		{abi.EDENIED, nil, experimentalsys.EACCES}, {abi.ENOENT, nil, experimentalsys.ENOENT},
		{abi.EINVAL, nil, experimentalsys.EINVAL}, {abi.ENOTSUP, nil, experimentalsys.ENOTSUP},
		{abi.EIO, nil, experimentalsys.EIO}, {abi.EPROTO, nil, experimentalsys.EIO}, {abi.ENOSPC, nil, experimentalsys.EIO},
		{abi.ETOOBIG, nil, experimentalsys.EIO}, {abi.ECANCELED, nil, experimentalsys.EIO},
		{abi.EBUSY, []byte{byte(abi.FileExists)}, experimentalsys.EEXIST},
		{abi.EBUSY, []byte{byte(abi.FileNotEmpty)}, experimentalsys.ENOTEMPTY},
		{abi.EINVAL, []byte{byte(abi.FileNotDirectory)}, experimentalsys.ENOTDIR},
		{abi.EINVAL, []byte{byte(abi.FileIsDirectory)}, experimentalsys.EISDIR},
		{abi.EINVAL, []byte{byte(abi.FileLoop)}, experimentalsys.ELOOP},
		{abi.EINVAL, []byte{byte(abi.FileBadHandle)}, experimentalsys.EBADF},
		{abi.EINVAL, []byte{99}, experimentalsys.EINVAL}, {abi.EDENIED, []byte("text"), experimentalsys.EACCES},
	} {
		if got := fileErrno(c.errno, c.reply); got != c.want {
			t.Errorf("%v %v: %v, want %v", c.errno, c.reply, got, c.want)
		}
	}
}

func openRemote(t testing.TB, r experimentalsys.FS, path string, flag experimentalsys.Oflag) experimentalsys.File {
	t.Helper()
	f, errno := r.OpenFile(path, flag, 0o600)
	if errno != 0 {
		t.Fatalf("open %s: %v", path, errno)
	}
	return f
}

// Small steps cost few calls, and no fetch is smaller than a block.
func TestReadAhead(t *testing.T) {
	d, at := openDirect(t, filesystem.DefaultQuotas())
	content := bigFile(4 * abi.MiB)
	must(t, os.WriteFile(at.data+"/f", content, 0o644))
	f := openRemote(t, newRemoteFS(d, data), "f", experimentalsys.O_RDONLY)
	var got bytes.Buffer
	step := make([]byte, 4096)
	for {
		n, errno := f.Read(step)
		if errno != 0 {
			t.Fatal(errno)
		}
		if n == 0 {
			break
		}
		got.Write(step[:n])
	}
	if !bytes.Equal(got.Bytes(), content) {
		t.Fatalf("read %d bytes that differ", got.Len())
	}
	if d.by[abi.CallFileRead] > 10 {
		t.Errorf("%d reads for 4 MiB", d.by[abi.CallFileRead])
	}
	d.reset()
	whole := make([]byte, len(content))
	n, errno := f.Pread(whole, 0)
	if n != len(whole) || errno != 0 || !bytes.Equal(whole, content) || d.calls > 6 {
		t.Errorf("all at once: %d bytes, %v, %d calls", n, errno, d.calls)
	}
	// To and fro between two places far apart, as in a packfile.
	d.reset()
	for i := range 100 {
		for _, place := range []int64{100_000, 3_000_000} {
			if n, errno := f.Pread(step, place+int64(i*100)); n != len(step) || errno != 0 ||
				!bytes.Equal(step, content[place+int64(i*100):][:4096]) {
				t.Fatalf("at %d: %d %v", place, n, errno)
			}
		}
	}
	if d.calls > 6 {
		t.Errorf("%d calls to read two places", d.calls)
	}
}

// A small file is one call, a small directory too, whatever is asked of them.
func TestSmallFileIsOneCall(t *testing.T) {
	d, at := openDirect(t, filesystem.DefaultQuotas())
	must(t, os.Mkdir(at.data+"/dir", 0o755))
	must(t, os.WriteFile(at.data+"/dir/f", []byte("content"), 0o644))
	r := newRemoteFS(d, data)
	f := openRemote(t, r, "dir/f", experimentalsys.O_RDONLY)
	b := make([]byte, 100)
	st, errno := f.Stat()
	if errno != 0 || st.Size != 7 || !st.Mode.IsRegular() {
		t.Errorf("stat: %+v %v", st, errno)
	}
	if n, errno := f.Read(b); string(b[:n]) != "content" || errno != 0 {
		t.Errorf("read %q %v", b[:n], errno)
	}
	if n, errno := f.Read(b); n != 0 || errno != 0 {
		t.Errorf("at the end: %d %v", n, errno)
	}
	if off, errno := f.Seek(-3, io.SeekEnd); off != 4 || errno != 0 {
		t.Errorf("seek: %d %v", off, errno)
	}
	if errno := f.Close(); errno != 0 || d.calls != 1 {
		t.Errorf("close: %v after %d calls", errno, d.calls)
	}
	d.reset()
	dir := openRemote(t, r, "dir", experimentalsys.O_RDONLY|experimentalsys.O_DIRECTORY)
	list, errno := dir.Readdir(-1)
	if errno != 0 || len(list) != 1 || list[0].Name != "f" || list[0].IsDir() {
		t.Errorf("list %v %v", list, errno)
	}
	if errno := dir.Close(); errno != 0 || d.calls != 1 {
		t.Errorf("close: %v after %d calls", errno, d.calls)
	}
}

// The engine panics if the root of a mount cannot be opened, so it always can.
func TestRootOpensWithoutAHost(t *testing.T) {
	r := newRemoteFS(refusing{}, data)
	for _, path := range []string{".", "/", "./", ""} {
		f, errno := r.OpenFile(path, experimentalsys.O_RDONLY, 0)
		if errno != 0 {
			t.Fatalf("%q: %v", path, errno)
		}
		if _, errno := f.Readdir(10); errno != experimentalsys.EACCES {
			t.Errorf("%q: list: %v", path, errno)
		}
		if _, errno := f.Stat(); errno != experimentalsys.EACCES {
			t.Errorf("%q: stat: %v", path, errno)
		}
		if errno := f.Close(); errno != 0 {
			t.Errorf("%q: close: %v", path, errno)
		}
	}
}

type refusing struct{}

func (refusing) call(abi.Call, []byte) ([]byte, abi.Errno) { return nil, abi.EDENIED }

// What is remembered is at most a second old.
func TestStaleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, at := openDirect(t, filesystem.DefaultQuotas())
		small, large := at.data+"/small", at.data+"/large"
		must(t, os.WriteFile(small, []byte("old"), 0o644))
		must(t, os.WriteFile(large, bytes.Repeat([]byte("old"), 70_000), 0o644))
		r := newRemoteFS(d, data)
		files := map[string]experimentalsys.File{"small": openRemote(t, r, "small", 0), "large": openRemote(t, r, "large", 0)}
		check := func(when, want string, size int64) {
			t.Helper()
			for name, f := range files {
				b := make([]byte, 3)
				n, errno := f.Pread(b, 0)
				if string(b[:n]) != want || errno != 0 {
					t.Errorf("%s, %s: read %q %v", when, name, b[:n], errno)
				}
				if st, errno := f.Stat(); errno != 0 || size > 0 && st.Size != size {
					t.Errorf("%s, %s: stat %+v %v", when, name, st, errno)
				}
			}
		}
		check("at first", "old", 0)
		for _, path := range []string{small, large} {
			must(t, os.WriteFile(path, []byte("new content"), 0o644))
		}
		check("at once", "old", 0)
		time.Sleep(staleAfter)
		check("later", "new", 11)
		for _, path := range []string{small, large} {
			must(t, os.Rename(path, path+".moved"))
			must(t, os.WriteFile(path, []byte("another file"), 0o644))
		}
		time.Sleep(staleAfter)
		check("when the name is another file's", "new", 11)
		must(t, os.WriteFile(small, bytes.Repeat([]byte("L"), 200_000), 0o644))
		time.Sleep(staleAfter)
		check("when that one is large", "new", 11)
		for _, f := range files {
			if errno := f.Close(); errno != 0 {
				t.Error(errno)
			}
		}
		if kept := r.(*remoteFS).cachedCount; kept != 0 {
			t.Errorf("%d files kept after all are closed", kept)
		}
	})
}

// A small file that grows while it is open is read on.
func TestSmallFileGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, at := openDirect(t, filesystem.DefaultQuotas())
		must(t, os.WriteFile(at.data+"/log", []byte("one\n"), 0o644))
		f := openRemote(t, newRemoteFS(d, data), "log", 0)
		b := make([]byte, 2*abi.FileBlock)
		n, _ := f.Read(b)
		w, err := os.OpenFile(at.data+"/log", os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		defer w.Close()
		for _, more := range []string{"two\n", string(bigFile(abi.FileBlock))} {
			w.WriteString(more)
			time.Sleep(staleAfter)
			if n, errno := f.Read(b); string(b[:n]) != more || errno != 0 {
				t.Errorf("read %d bytes %v, want %d", n, errno, len(more))
			}
		}
		if n != 4 || f.Close() != 0 {
			t.Errorf("read %d at first", n)
		}
	})
}

// What fits in the worker does not count against the host's handles; what
// comes after does.
func TestKeptFilesAreBounded(t *testing.T) {
	d, at := openDirect(t, filesystem.DefaultQuotas())
	must(t, os.WriteFile(at.data+"/f", []byte("x"), 0o644))
	r := newRemoteFS(d, data)
	var open []experimentalsys.File
	for {
		f, errno := r.OpenFile("f", experimentalsys.O_RDONLY, 0)
		if errno != 0 {
			break
		}
		open = append(open, f)
	}
	if len(open) != maxCached+abi.MaxFileHandles {
		t.Errorf("%d files open", len(open))
	}
	for _, f := range open {
		b := make([]byte, 2)
		if n, errno := f.Read(b); n != 1 || errno != 0 {
			t.Fatalf("read %d %v", n, errno)
		}
		f.Close()
	}
	openRemote(t, r, "f", experimentalsys.O_RDONLY).Close()
}

// Listing goes through all pages, in any steps, and again from the start.
func TestReaddir(t *testing.T) {
	d, at := openDirect(t, filesystem.DefaultQuotas())
	for _, count := range []int{0, 1, 1000, 2001} {
		dir := fmt.Sprint("d", count)
		must(t, os.Mkdir(at.out+"/"+dir, 0o755))
		for i := range count {
			must(t, os.WriteFile(fmt.Sprintf("%s/%s/%04d", at.out, dir, i), nil, 0o644))
		}
		f := openRemote(t, newRemoteFS(d, out), dir, experimentalsys.O_RDONLY)
		for _, step := range []int{-1, 7, 1000, 5000} {
			var names []string
			for {
				list, errno := f.Readdir(step)
				if errno != 0 {
					t.Fatal(errno)
				}
				for _, e := range list {
					names = append(names, e.Name)
				}
				if step < 0 || len(list) < step {
					break
				}
			}
			slices.Sort(names)
			if len(names) != count || len(slices.Compact(names)) != count {
				t.Errorf("%d entries in steps of %d: %d", count, step, len(names))
			}
			if _, errno := f.Seek(0, io.SeekStart); errno != 0 {
				t.Fatal(errno)
			}
		}
		must(t, os.WriteFile(at.out+"/"+dir+"/late", nil, 0o644))
		if list, errno := f.Readdir(-1); errno != 0 || len(list) != count+1 {
			t.Errorf("%d entries after a rewind, %v, want %d", len(list), errno, count+1)
		}
		f.Close()
	}
}

// A remote file does what a local one does, whatever the order of things.
func TestFileLikeALocalOne(t *testing.T) {
	d, at := openDirect(t, filesystem.DefaultQuotas())
	r := newRemoteFS(d, out)
	local, err := os.OpenFile(t.TempDir()+"/local", os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer local.Close()
	f := openRemote(t, r, "remote", experimentalsys.O_RDWR|experimentalsys.O_CREAT)
	other := openRemote(t, r, "remote", experimentalsys.O_RDONLY)
	rnd := rand.New(rand.NewPCG(1, 2))
	size := func() int64 { return rnd.Int64N(1 << (4 + rnd.IntN(18))) }
	for i := range 3000 {
		a, b := make([]byte, size()), []byte(nil)
		b = slices.Clone(a)
		off := size()
		what := ""
		var n, m int
		switch rnd.IntN(6) {
		case 0:
			what = "read"
			n, _ = f.Read(a)
			m, _ = io.ReadFull(local, b)
		case 1:
			what = "pread"
			n, _ = f.Pread(a, off)
			m, _ = local.ReadAt(b, off)
		case 2:
			what = "pread by another"
			n, _ = other.Pread(a, off)
			m, _ = local.ReadAt(b, off)
		case 3:
			what = "write"
			fill := rand.NewChaCha8([32]byte{byte(i)})
			fill.Read(a)
			n, _ = f.Write(a)
			m, _ = local.Write(a)
			b = a
		case 4:
			what = "seek"
			whence := rnd.IntN(3)
			if whence == io.SeekEnd {
				off = -off
			}
			x, errno := f.Seek(off, whence)
			y, err := local.Seek(off, whence)
			if (errno == 0) != (err == nil) || err == nil && x != y {
				t.Fatalf("step %d: seek %d %d: %d %v, want %d %v", i, off, whence, x, errno, y, err)
			}
		case 5:
			if rnd.IntN(4) == 0 {
				what = "truncate"
				if errno := f.Truncate(off); errno != 0 {
					t.Fatal(errno)
				}
				must(t, local.Truncate(off))
			}
		}
		if n != m || !bytes.Equal(a, b) {
			t.Fatalf("step %d: %s of %d at %d: %d, want %d", i, what, len(a), off, n, m)
		}
		st, errno := f.Stat()
		fi, err := local.Stat()
		must(t, err)
		if errno != 0 || st.Size != fi.Size() {
			t.Fatalf("step %d: size %d %v, want %d", i, st.Size, errno, fi.Size())
		}
	}
	f.Close()
	other.Close()
	x, err := os.ReadFile(at.out + "/remote")
	must(t, err)
	y, err := os.ReadFile(local.Name())
	must(t, err)
	if !bytes.Equal(x, y) {
		t.Error("contents differ in the end")
	}
}

// What is closed, or opened for the other direction, is a bad descriptor.
func TestBadDescriptors(t *testing.T) {
	d, at := openDirect(t, filesystem.DefaultQuotas())
	must(t, os.WriteFile(at.out+"/f", []byte("x"), 0o644))
	r := newRemoteFS(d, out)
	b := make([]byte, 1)
	for _, c := range []struct {
		flag  experimentalsys.Oflag
		close bool
		read  experimentalsys.Errno
		write experimentalsys.Errno
	}{
		{experimentalsys.O_RDONLY, false, 0, experimentalsys.EBADF},
		{experimentalsys.O_WRONLY, false, experimentalsys.EBADF, 0}, {experimentalsys.O_RDWR, false, 0, 0},
		{experimentalsys.O_RDWR, true, experimentalsys.EBADF, experimentalsys.EBADF},
	} {
		f := openRemote(t, r, "f", c.flag)
		if c.close {
			f.Close()
		}
		if _, errno := f.Pread(b, 0); errno != c.read {
			t.Errorf("%+v: read %v", c, errno)
		}
		if _, errno := f.Pwrite(b, 0); errno != c.write {
			t.Errorf("%+v: write %v", c, errno)
		}
		if errno := f.Truncate(1); errno != c.write {
			t.Errorf("%+v: truncate %v", c, errno)
		}
		if errno := f.Close(); errno != 0 {
			t.Errorf("%+v: close %v", c, errno)
		}
	}
}

// A scripted caller answers with what it is given.
type scripted struct {
	reply []byte
	errno abi.Errno
}

func (s *scripted) call(abi.Call, []byte) ([]byte, abi.Errno) { return s.reply, s.errno }

// Whatever the host says, the worker answers the guest and goes on.
func FuzzRemoteReplies(f *testing.F) {
	open := abi.FileOpenReply{Handle: 1, Stat: abi.FileStat{Kind: abi.FileRegular, Size: 5}, Content: []byte("hello")}
	f.Add(open.Append(nil), []byte("data"), uint16(0))
	open.Stat.Kind, open.Content = abi.FileFolder, abi.FilePage{End: true}.Append(nil)
	f.Add(open.Append(nil), abi.FilePage{}.Append(nil), uint16(0))
	f.Add([]byte{}, []byte{1}, uint16(5))
	f.Fuzz(func(t *testing.T, first, then []byte, errno uint16) {
		s := &scripted{reply: first}
		r := newRemoteFS(s, 0)
		file, failed := r.OpenFile("f", experimentalsys.O_RDWR, 0)
		if failed != 0 {
			return
		}
		s.reply, s.errno = then, abi.Errno(errno)
		b := make([]byte, 100)
		if n, _ := file.Read(b); n > len(b) {
			t.Errorf("read %d", n)
		}
		if n, _ := file.Write(b); n > len(b) {
			t.Errorf("wrote %d", n)
		}
		file.Stat()
		file.Seek(0, io.SeekEnd)
		if dir, ok := file.(*remoteDir); !ok || dir.end {
			if list, _ := file.Readdir(10); len(list) > 10 {
				t.Errorf("%d entries", len(list))
			}
		}
		file.Close()
		r.Stat("x")
		r.Rename("x", "y")
	})
}
