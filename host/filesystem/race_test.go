//go:build unix

package filesystem_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

// A swapper keeps exchanging what a name in the writable root stands for until
// a test has tried often enough.
func (g *guest) swapping(change func(), try func(), times int) {
	g.t.Helper()
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			change()
		}
	}()
	for range times {
		try()
	}
	stop.Store(true)
	<-done
}

// A directory that turns into a link to the outside between any two
// steps of an operation leads nowhere.
func TestRaceDirectoryForLink(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	check := g.outside()
	writeFile(t, g.rw+"/real/dir/inner", "inside")
	writeFile(t, g.rw+"/real/secret", "inside")
	must(t, os.Mkdir(g.rw+"/real/empty", 0o755))
	name := filepath.Join(g.rw, "d")
	must(t, os.Symlink(filepath.Join(g.base, "outside"), g.rw+"/evil"))
	change := func() {
		os.Rename(g.rw+"/real", name)
		os.Rename(name, g.rw+"/real")
		os.Rename(g.rw+"/evil", name)
		os.Rename(name, g.rw+"/evil")
	}
	opened := 0
	try := func() {
		for _, path := range []string{"d/secret", "d/dir/inner"} {
			p, a := g.openFile(rw, path, abi.FileRead, abi.FileBlock)
			if a != ok {
				continue
			}
			opened++
			if string(p.Content) != "inside" {
				t.Fatalf("%s: read %q", path, p.Content)
			}
			g.close(p.Handle)
		}
		if p, a := g.openFile(rw, "d/secret", abi.FileWrite, 0); a == ok {
			g.write(p.Handle, 0, []byte("inside"))
			g.close(p.Handle)
		}
		if a := g.put(rw, "d/new", []byte("x")); a == ok {
			g.path(abi.CallFileUnlink, rw, "d/new")
		}
		if g.path(abi.CallFileMkdir, rw, "d/made") == ok {
			g.path(abi.CallFileRmdir, rw, "d/made")
		}
		if p, a := g.openFile(rw, "d/dir", abi.FileRead|abi.FileDirectory, abi.FileBlock); a == ok && p.Handle != 0 {
			g.close(p.Handle)
		}
		g.times(rw, "d/secret")
		g.stat(rw, "d/secret")
		g.path(abi.CallFileUnlink, rw, "d/nothing")
		g.path(abi.CallFileRmdir, rw, "d/empty/none")
		if g.rename(rw, "d/secret", "d/moved") == ok {
			g.rename(rw, "d/moved", "d/secret")
		}
	}
	g.swapping(change, try, 3000)
	check()
	if opened == 0 {
		t.Error("no try ever met the directory: the race was not run")
	}
}

// A regular file that turns into a FIFO or a link while it is opened does
// not block and is not followed.
func TestRaceFileForFIFO(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	writeFile(t, g.base+"/outside", secret)
	writeFile(t, g.rw+"/real", "inside")
	must(t, mkfifo(g.rw+"/fifo"))
	must(t, os.Symlink("../outside", g.rw+"/evil"))
	name := g.rw + "/f"
	change := func() {
		for _, from := range []string{"/real", "/fifo", "/evil"} {
			os.Rename(g.rw+from, name)
			os.Rename(name, g.rw+from)
		}
	}
	opened := 0
	try := func() {
		p, a := g.openFile(rw, "f", abi.FileRead, abi.FileBlock)
		if a == ok {
			opened++
			g.close(p.Handle)
			if p.Stat.Kind != abi.FileRegular || bytes.Contains(p.Content, []byte("oracle")) {
				t.Fatalf("opened %+v", p)
			}
		}
		if p, a := g.openFile(rw, "f", abi.FileWrite, 0); a == ok {
			g.close(p.Handle)
		}
	}
	g.swapping(change, try, 10_000)
	if opened == 0 {
		t.Error("no try ever met the file: the race was not run")
	}
}

// CVE-2026-27139: what a listing says about its entries is about those of the
// open directory.
func TestRaceListing(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	writeFile(t, g.rw+"/real/entry", "inside")
	must(t, os.MkdirAll(g.base+"/outside/entry", 0o755)) // the same name, another type
	must(t, os.Symlink("../outside", g.rw+"/evil"))
	change := func() {
		os.Rename(g.rw+"/real", g.rw+"/d")
		os.Rename(g.rw+"/d", g.rw+"/real")
		os.Rename(g.rw+"/evil", g.rw+"/d")
		os.Rename(g.rw+"/d", g.rw+"/evil")
	}
	listed := 0
	try := func() {
		p, a := g.openFile(rw, "d", abi.FileRead, abi.FileBlock)
		if a != ok {
			return
		}
		page, err := abi.ParseFilePage(p.Content)
		must(t, err)
		for _, e := range page.Entries {
			if listed++; e.Kind != abi.FileRegular {
				t.Fatalf("listed %+v", e)
			}
		}
	}
	g.swapping(change, try, 10_000)
	if listed == 0 {
		t.Error("no try ever met the directory: the race was not run")
	}
}
