//go:build unix

package filesystem_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

// What a guest does all day.
func TestFilesAndDirectories(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	for _, mount := range []uint32{rw, tmp} {
		g.want("mkdir", g.path(abi.CallFileMkdir, mount, "d"), ok)
		g.want("mkdir again", g.path(abi.CallFileMkdir, mount, "d"), exists)
		g.want("mkdir of the root", g.path(abi.CallFileMkdir, mount, "."), exists)
		g.want("mkdir below nothing", g.path(abi.CallFileMkdir, mount, "x/y"), absent)
		g.want("put", g.put(mount, "d/f", []byte("hello")), ok)
		g.want("mkdir below a file", g.path(abi.CallFileMkdir, mount, "d/f/y"), notDir)
		_, a := g.openFile(mount, "d/f", abi.FileWrite|abi.FileCreate|abi.FileExclusive, 0)
		g.want("create anew", a, exists)
		_, a = g.openFile(mount, "d", abi.FileRead|abi.FileWrite, 0)
		g.want("write a directory", a, isDir)
		_, a = g.openFile(mount, "new/", abi.FileWrite|abi.FileCreate, 0)
		g.want("create a directory", a, isDir)
		_, a = g.openFile(mount, "d/f", abi.FileRead|abi.FileDirectory, 0)
		g.want("a file as directory", a, notDir)
		g.want("unlink a directory", g.path(abi.CallFileUnlink, mount, "d"), isDir)
		g.want("rmdir a file", g.path(abi.CallFileRmdir, mount, "d/f"), notDir)
		g.want("rmdir with something in it", g.path(abi.CallFileRmdir, mount, "d"), notEmpty)
		g.want("rmdir of the root", g.path(abi.CallFileRmdir, mount, "."), denied)
		g.want("rename", g.rename(mount, "d/f", "d/g"), ok)
		g.want("rename of nothing", g.rename(mount, "d/f", "d/h"), absent)
		g.want("rename of the root", g.rename(mount, ".", "d/h"), denied)
		g.want("rename onto a directory", g.rename(mount, "d/g", "d"), isDir)
		g.want("rename into itself", g.rename(mount, "d", "d/e"), invalid)
		g.want("rename with a slash", g.rename(mount, "d/g", "d/h/"), notDir)
		g.want("rename of a directory with a slash", g.rename(mount, "d", "e/"), ok)
		g.want("times", g.times(mount, "e/g"), ok)
		if st, _ := g.stat(mount, "e/g"); st.Mtime != 1e18 || st.Size != 5 || st.Kind != abi.FileRegular || st.Links != 1 {
			t.Errorf("stat says %+v", st)
		}
		g.want("unlink", g.path(abi.CallFileUnlink, mount, "e/g"), ok)
		g.want("rmdir", g.path(abi.CallFileRmdir, mount, "e"), ok)
		if _, a := g.stat(mount, "e"); a != absent {
			t.Errorf("stat of what is gone: %v", a)
		}
	}
}

// Files are 0600, directories 0700.
func TestModesAreFixed(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	g.want("put", g.put(rw, "f", []byte("x")), ok)
	g.want("mkdir", g.path(abi.CallFileMkdir, rw, "d"), ok)
	for name, want := range map[string]os.FileMode{"f": 0o600, "d": os.ModeDir | 0o700} {
		fi, err := os.Stat(g.rw + "/" + name)
		must(t, err)
		if fi.Mode() != want {
			t.Errorf("%s has mode %v", name, fi.Mode())
		}
	}
}

// A root is read-only unless approved otherwise.
func TestReadOnly(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	writeFile(t, g.ro+"/f", "x")
	must(t, os.Mkdir(g.ro+"/d", 0o755))
	before := snapshot(t, g.ro)
	for op, a := range map[string]answer{
		"write":    second(g.openFile(ro, "f", abi.FileWrite, 0)),
		"append":   second(g.openFile(ro, "f", abi.FileRead|abi.FileWrite, 0)),
		"create":   second(g.openFile(ro, "n", abi.FileWrite|abi.FileCreate, 0)),
		"truncate": second(g.openFile(ro, "f", abi.FileRead|abi.FileTruncate, 0)),
		"unlink":   g.path(abi.CallFileUnlink, ro, "f"), "rmdir": g.path(abi.CallFileRmdir, ro, "d"),
		"mkdir": g.path(abi.CallFileMkdir, ro, "n"), "rename": g.rename(ro, "f", "n"), "times": g.times(ro, "f"),
	} {
		g.want(op, a, denied)
	}
	p, a := g.openFile(ro, "f", abi.FileRead, 0)
	g.want("open", a, ok)
	g.want("write to a handle for reading", g.write(p.Handle, 0, []byte("y")), bad)
	g.want("truncate a handle for reading", g.truncate(p.Handle, 0), bad)
	if after := snapshot(t, g.ro); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("changed: %v to %v", before, after)
	}
}

// FIFOs, sockets and devices are named and never opened; nothing blocks.
func TestSpecialFiles(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	specials := []string{"fifo", "socket"}
	must(t, syscall.Mkfifo(g.rw+"/fifo", 0o666))
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(fd)
	must(t, os.Mkdir(g.rw+"/d", 0o755))
	t.Chdir(g.rw) // a socket's address is short
	must(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: "socket"}))
	if err := syscall.Mknod(g.rw+"/device", syscall.S_IFCHR|0o666, 1<<8|5); err == nil {
		specials = append(specials, "device") // /dev/zero
	} else if !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
	for _, name := range specials {
		must(t, os.Symlink(name, g.rw+"/to-"+name))
		for _, path := range []string{name, "to-" + name, "d/../" + name} {
			for _, flags := range []abi.FileFlags{
				abi.FileRead, abi.FileWrite, abi.FileRead | abi.FileWrite, abi.FileWrite | abi.FileCreate,
				abi.FileWrite | abi.FileTruncate, abi.FileRead | abi.FileDirectory,
			} {
				_, a := g.openFile(rw, path, flags, abi.FileBlock)
				g.want(fmt.Sprintf("open %s %b", path, flags), a, denied)
			}
			g.want("times "+path, g.times(rw, path), denied)
		}
		g.want("unlink "+name, g.path(abi.CallFileUnlink, rw, name), denied)
		g.want("rename "+name, g.rename(rw, name, "moved"), denied)
		g.want("put", g.put(rw, "file", []byte("x")), ok)
		g.want("rename onto "+name, g.rename(rw, "file", name), denied)
		if st, a := g.lstat(rw, name); a != ok || st.Kind != abi.FileSpecial {
			t.Errorf("lstat %s: %+v %v", name, st, a)
		}
	}
}

// A file with a second name is read, not written.
func TestHardLinks(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	writeFile(t, g.base+"/outside", secret)
	must(t, os.Link(g.base+"/outside", g.rw+"/linked"))
	p, a := g.openFile(rw, "linked", abi.FileRead, 0)
	g.want("read", a, ok)
	b, a := g.read(p.Handle, 0, 100)
	g.want("read", a, ok)
	if string(b) != secret {
		t.Errorf("read %q", b)
	}
	for _, flags := range []abi.FileFlags{abi.FileWrite, abi.FileWrite | abi.FileTruncate, abi.FileWrite | abi.FileCreate,
		abi.FileRead | abi.FileTruncate} {
		_, a := g.openFile(rw, "linked", flags, 0)
		g.want(fmt.Sprintf("open with %b", flags), a, denied)
	}
	g.want("times", g.times(rw, "linked"), denied)
	g.want("unlink", g.path(abi.CallFileUnlink, rw, "linked"), ok)
	if b, err := os.ReadFile(g.base + "/outside"); err != nil || string(b) != secret {
		t.Errorf("the other name has %q, %v", b, err)
	}
}

// A handle stays bound to the file, whatever becomes of its name.
func TestHandlesOutliveNames(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	g.want("put", g.put(rw, "f", []byte("first")), ok)
	h := g.handle(rw, "f", abi.FileRead|abi.FileWrite)
	g.want("rename", g.rename(rw, "f", "g"), ok)
	g.want("put", g.put(rw, "f", []byte("second")), ok)
	g.want("unlink", g.path(abi.CallFileUnlink, rw, "g"), ok)
	b, a := g.read(h, 0, 10)
	g.want("read", a, ok)
	if string(b) != "first" {
		t.Errorf("read %q", b)
	}
	st, a := g.parseStat(g.call(abi.CallFileStat, abi.FileStatRequest{Mount: rw, Handle: h}))
	g.want("stat", a, ok)
	if st.Links != 0 || st.Size != 5 {
		t.Errorf("stat says %+v", st)
	}
	_, a = g.call(abi.CallFileSync, abi.FileHandleRequest{Handle: h})
	g.want("sync", a, ok)
	g.want("close", g.close(h), ok)
	g.want("close again", g.close(h), bad)
	_, a = g.read(h, 0, 1)
	g.want("read what is closed", a, bad)
}
