//go:build unix

package filesystem_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o666) }

// Open brings the beginning, and keeps nothing open that is complete.
func TestOpenBringsContent(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	content := make([]byte, abi.FileBlock+1)
	rand.NewChaCha8([32]byte{1}).Read(content)
	for _, c := range []struct {
		mount uint32
		size  int
		ahead uint32
		kept  bool
	}{
		{ro, 0, abi.FileBlock, false}, {ro, 10, abi.FileBlock, false}, {ro, 10, 10, false},
		{ro, 10, 9, true}, {ro, 10, 0, true}, {ro, abi.FileBlock, abi.FileBlock, false},
		{ro, abi.FileBlock + 1, abi.FileBlock, true}, {rw, 0, abi.FileBlock, true}, {rw, 10, abi.FileBlock, true},
	} {
		what := fmt.Sprintf("%+v", c)
		for _, root := range []string{g.ro, g.rw} {
			must(t, os.WriteFile(root+"/f", content[:c.size], 0o644))
		}
		p, a := g.openFile(c.mount, "f", abi.FileRead, c.ahead)
		g.want(what, a, ok)
		if !bytes.Equal(p.Content, content[:min(c.size, int(c.ahead))]) || p.Stat.Size != int64(c.size) ||
			(p.Handle != 0) != c.kept {
			t.Errorf("%s: handle %d, size %d, %d bytes", what, p.Handle, p.Stat.Size, len(p.Content))
		}
		if p.Handle != 0 {
			b, a := g.read(p.Handle, 1, abi.MaxFileChunk)
			g.want(what, a, ok)
			if !bytes.Equal(b, content[min(1, c.size):c.size]) {
				t.Errorf("%s: read %d bytes", what, len(b))
			}
			b, a = g.read(p.Handle, 1<<62, 10)
			g.want(what+" past the end", a, ok)
			if len(b) != 0 {
				t.Errorf("%s: read %d bytes past the end", what, len(b))
			}
			g.close(p.Handle)
		}
	}
}

// Listings come in pages, each complete in itself.
func TestListingPages(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	var want []string
	for i := range 2*abi.MaxFileEntries + 1 {
		name := fmt.Sprintf("%04d", i)
		want = append(want, name)
		writeFile(t, g.ro+"/many/"+name, "")
	}
	p, a := g.openFile(ro, "many", abi.FileRead, abi.FileBlock)
	g.want("open", a, ok)
	page, err := abi.ParseFilePage(p.Content)
	must(t, err)
	if p.Handle == 0 || page.End || len(page.Entries) != abi.MaxFileEntries {
		t.Fatalf("first page: handle %d, %d entries, end %v", p.Handle, len(page.Entries), page.End)
	}
	for _, rewind := range []bool{false, true} {
		var got []string
		if !rewind {
			got = names(page.Entries)
		}
		pages := 0
		for end := false; !end; pages++ {
			b, a := g.call(abi.CallFileReadDir, abi.FileReadDirRequest{Handle: p.Handle, Rewind: rewind && pages == 0})
			g.want("page", a, ok)
			more, err := abi.ParseFilePage(b)
			must(t, err)
			got, end = append(got, names(more.Entries)...), more.End
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("rewind %v: %d names, want %d", rewind, len(got), len(want))
		}
	}
	list, a := g.list(ro, ".")
	g.want("list", a, ok)
	if fmt.Sprint(names(list)) != "[many]" || list[0].Kind != abi.FileFolder {
		t.Errorf("the root lists %v", list)
	}
	_, a = g.call(abi.CallFileReadDir, abi.FileReadDirRequest{Handle: 999})
	g.want("list nothing", a, bad)
	h := g.handle(ro, "many/0000", abi.FileRead)
	_, a = g.call(abi.CallFileReadDir, abi.FileReadDirRequest{Handle: h})
	g.want("list a file", a, notDir)
	_, a = g.read(p.Handle, 0, 10)
	g.want("read a directory", a, isDir)
}

func names(list []abi.FileEntry) (all []string) {
	for _, e := range list {
		all = append(all, e.Name)
	}
	return all
}

// A call that the run no longer wants ends at once.
func TestContext(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	writeFile(t, g.ro+"/f", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for c := abi.CallFileOpen; c <= abi.CallFileTimes; c++ {
		_, a := g.callContext(ctx, c, abi.FileHandleRequest{})
		g.want(fmt.Sprint("call ", c), a, canceled)
	}
	h := g.handle(ro, "f", abi.FileRead)
	expiring := &countdown{Context: t.Context(), left: 1}
	_, a := g.callContext(expiring, abi.CallFileRead, abi.FileReadRequest{Handle: h, Length: abi.MaxFileChunk})
	g.want("canceled during a read", a, canceled)
	d := g.handle(ro, ".", abi.FileRead)
	expiring.left = 1
	_, a = g.callContext(expiring, abi.CallFileReadDir, abi.FileReadDirRequest{Handle: d})
	g.want("canceled during a listing", a, canceled)
}

// A countdown is canceled after it was looked at some times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// At most 64 handles.
func TestHandleLimit(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	writeFile(t, g.ro+"/f", "x")
	var held []uint32
	for range abi.MaxFileHandles {
		held = append(held, g.handle(ro, "f", abi.FileRead))
	}
	_, a := g.openFile(ro, "f", abi.FileRead, 0)
	g.want("one more", a, tooBig)
	g.want("close", g.close(held[7]), ok)
	again := g.handle(ro, "f", abi.FileRead)
	if slices.Contains(held, again) {
		t.Errorf("handle %d is used again", again)
	}
}

// A worker that makes things up is told so, and its run is ended by the caller.
func TestProtocol(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	for c := abi.CallFileOpen; c <= abi.CallFileTimes; c++ {
		if reply, errno := g.fs.Handle(t.Context(), c, []byte{1, 2, 3}); errno != abi.EPROTO || len(reply) != 0 {
			t.Errorf("call %d with nonsense: %v %x", c, errno, reply)
		}
	}
	if _, errno := g.fs.Handle(t.Context(), abi.CallEmit, nil); errno != abi.EPROTO {
		t.Errorf("a call that is not about files: %v", errno)
	}
	for _, mount := range []uint32{3, 1<<32 - 1} {
		_, a := g.stat(mount, "f")
		g.want(fmt.Sprint("mount ", mount), a, protocol)
	}
}

// Handle takes any bytes from a worker: it answers, stays within its root and
// its quota, and keeps no more open than it may.
func FuzzHandle(f *testing.F) {
	for i, p := range []payload{
		abi.FileOpenRequest{Mount: rw, Flags: abi.FileWrite | abi.FileCreate, Path: "new"},
		abi.FileOpenRequest{Mount: ro, Flags: abi.FileRead, Ahead: 10, Path: "out/secret"},
		abi.FileReadRequest{Handle: 1, Length: 10}, abi.FileWriteRequest{Handle: 1, Data: []byte("x")},
		abi.FileHandleRequest{Handle: 1}, abi.FileStatRequest{Path: "../x"}, abi.FilePathRequest{Mount: tmp, Path: "d"},
		abi.FileReadDirRequest{Handle: 2}, abi.FileRenameRequest{Mount: rw, From: "plain", To: "out"},
		abi.FileTruncateRequest{Handle: 1, Size: 100}, abi.FileTimesRequest{Mount: rw, SetAtime: true, Path: "outfile"},
	} {
		f.Add(uint8(i), p.Append(nil))
	}
	g := newGuest(f, smallQuotas())
	check := g.outside()
	g.handle(rw, "plain", abi.FileRead|abi.FileWrite)
	g.handle(rw, ".", abi.FileRead)
	f.Fuzz(func(t *testing.T, c uint8, req []byte) {
		reply, errno := g.fs.Handle(t.Context(), abi.CallFileOpen+abi.Call(c%14), req)
		if !errno.Known() || errno == abi.EIO || bytes.Contains(reply, []byte("oracle")) {
			t.Errorf("call %d: %v %q", c%14, errno, reply)
		}
	})
	check()
}
