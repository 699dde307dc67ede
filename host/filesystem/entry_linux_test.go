package filesystem_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

// What is mounted inside a root from another device is not there.
func TestOtherDevices(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	must(t, os.Mkdir(g.rw+"/mnt", 0o755))
	if err := syscall.Mount("none", g.rw+"/mnt", "tmpfs", 0, "size=64k"); errors.Is(err, syscall.EPERM) {
		t.Skip("mounting needs privileges")
	} else if err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(g.rw+"/mnt", 0)
	writeFile(t, g.rw+"/mnt/sub/f", secret)
	must(t, os.Symlink("mnt/sub/f", g.rw+"/link"))
	for _, path := range []string{"mnt", "mnt/", "mnt/sub", "mnt/sub/f", "link"} {
		_, a := g.openFile(rw, path, abi.FileRead, abi.FileBlock)
		g.want("open "+path, a, absent)
		_, a = g.stat(rw, path)
		g.want("stat "+path, a, absent)
	}
	list, a := g.list(rw, ".")
	g.want("list", a, ok)
	if len(list) != 1 || list[0].Name != "link" {
		t.Errorf("listing shows %v", list)
	}
	g.want("mkdir", g.path(abi.CallFileMkdir, rw, "mnt/new"), absent)
	g.want("create", g.put(rw, "mnt/new", nil), absent)
	g.want("unlink", g.path(abi.CallFileUnlink, rw, "mnt/sub/f"), absent)
	g.want("rmdir", g.path(abi.CallFileRmdir, rw, "mnt/sub"), absent)
	g.want("rename", g.rename(rw, "mnt/sub/f", "f"), absent)
	g.want("times", g.times(rw, "mnt/sub/f"), absent)
	g.want("put", g.put(rw, "f", nil), ok)
	g.want("rename into it", g.rename(rw, "f", "mnt/f"), absent)
}
