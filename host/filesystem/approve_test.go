package filesystem_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/store"
)

// What no owner can approve.
func TestApproveRefuses(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	data := filepath.Join(base, "data")
	home := filepath.Join(base, "owner")
	for _, d := range []string{data + "/db", home + "/Documents", base + "/photos"} {
		must(t, os.MkdirAll(d, 0o755))
	}
	must(t, os.Symlink(data, filepath.Join(base, "photos", "link")))
	must(t, os.Symlink("/etc", filepath.Join(base, "etc")))
	t.Setenv("HOME", home)

	for _, c := range []struct{ path, reason string }{
		{"/", "is /"}, {"/proc", "/proc"}, {"/proc/self", "/proc"}, {"/sys", "/sys"}, {"/dev", "/dev"}, {"/dev/shm", "/dev"},
		{"/run", "is /run"}, {"/etc", "is /etc"}, {"/boot", "is /boot"}, {"/etc/../etc/", "is /etc"},
		{base + "/etc", "is /etc"},
		{"/home", "home itself"}, {"/root", "home"},
		{home, "home " + home}, {base, "contains the"},
		{data, "lies in the data directory"}, {data + "/db", "lies in the data directory"},
		{base + "/photos/link", "lies in the data directory"},
		{base + "/photos/link/db", "lies in the data directory"},
	} {
		if _, err := os.Stat(c.path); errors.Is(err, os.ErrNotExist) {
			continue // not every system has a /boot
		}
		_, err := filesystem.Approve(c.path, false, data)
		if !errors.Is(err, filesystem.ErrRefused) {
			t.Errorf("%s: got %v, want ErrRefused", c.path, err)
			continue
		}
		for _, part := range []string{c.path, c.reason, "approve a directory that holds only"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", c.path, err, part)
			}
		}
	}
}

// A data directory that does not exist yet is protected all the same.
func TestApproveRefusesTheParentOfADataDirectoryToBe(t *testing.T) {
	base := t.TempDir()
	_, err := filesystem.Approve(base, false, filepath.Join(base, "later", "data"))
	if !errors.Is(err, filesystem.ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}

func TestApproveNeedsADirectory(t *testing.T) {
	base := t.TempDir()
	writeFile(t, base+"/file", "x")
	for path, reason := range map[string]string{base + "/file": "not a directory",
		base + "/none": "existing directory", "": "empty path"} {
		if _, err := filesystem.Approve(path, false, ""); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %v, want %q", path, err, reason)
		}
	}
}

// The approval is of a directory and not of a name.
func TestApproveResolvesOnce(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	writeFile(t, base+"/real/f", "x")
	must(t, os.Symlink("real", base+"/link"))
	root, err := filesystem.Approve(base+"/link/", true, "")
	must(t, err)
	if root.Path != base+"/real" || !root.Writable || root.Inode == 0 {
		t.Errorf("approved %+v", root)
	}
}

// Mount_changed.
func TestOpenComparesTheDirectory(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, change := range map[string]func(path string){
		"gone":     func(p string) { must(t, os.Remove(p)) },
		"replaced": func(p string) { must(t, os.Rename(p, p+".old")); must(t, os.Mkdir(p, 0o755)) },
		"a link":   func(p string) { must(t, os.Rename(p, p+".old")); must(t, os.Symlink(p+".old", p)) },
		"a file":   func(p string) { must(t, os.Remove(p)); writeFile(t, p, "x") },
	} {
		path := filepath.Join(base, name)
		must(t, os.Mkdir(path, 0o755))
		root, err := filesystem.Approve(path, false, "")
		must(t, err)
		change(path)
		_, err = filesystem.Open([]store.Mount{named(root, "data")}, base+"/run", filesystem.DefaultQuotas())
		if !errors.Is(err, filesystem.ErrMountChanged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want mount_changed for %s", name, err, path)
		}
	}
}

func TestOpenRefusesMountsThatOverlap(t *testing.T) {
	base := t.TempDir()
	root, err := filesystem.Approve(base, false, "")
	must(t, err)
	at := func(paths ...string) (list []store.Mount) {
		for _, p := range paths {
			list = append(list, named(root, p))
		}
		return list
	}
	for _, roots := range [][]store.Mount{
		at(""), at("/"), at("/data"), at("a/../b"), at("a/"), at("tmp"), at("tmp/x"), at("a", "a"),
		at("a/b", "a"), at("a", "a/b"),
	} {
		if f, err := filesystem.Open(roots, t.TempDir(), filesystem.DefaultQuotas()); err == nil {
			f.Close()
			t.Errorf("%v opens", roots)
		}
	}
}

// /tmp is new, private, and gone in the end.
func TestScratchIsErased(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "r1")
	f, err := filesystem.Open(nil, dir, filesystem.DefaultQuotas())
	must(t, err)
	g := &guest{t: t, fs: f}
	fi, err := os.Stat(dir + "/tmp")
	must(t, err)
	if fi.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", fi.Mode())
	}
	if got := f.Mounts(); len(got) != 1 || got[0].Path != "/tmp" || got[0].Mode() != "rw" {
		t.Errorf("mounts %v", got)
	}
	g.want("mkdir", g.path(abi.CallFileMkdir, 0, "a"), ok)
	g.want("put", g.put(0, "a/f", []byte("x")), ok)
	if _, err := filesystem.Open(nil, dir, filesystem.DefaultQuotas()); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second run in the same directory: %v", err)
	}
	must(t, f.Close())
	must(t, f.Close())
	if _, err := os.Stat(dir + "/tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after close: %v", err)
	}
}

func TestQuotasAreBounded(t *testing.T) {
	must(t, filesystem.DefaultQuotas().Check())
	for _, change := range []func(*filesystem.Quotas){
		func(q *filesystem.Quotas) { q.Scratch.Bytes = 16<<30 + 1 },
		func(q *filesystem.Quotas) { q.Scratch.Files = 1_000_001 },
		func(q *filesystem.Quotas) { q.Scratch.Depth = 65 },
		func(q *filesystem.Quotas) { q.Root.Bytes = -1 },
	} {
		q := filesystem.DefaultQuotas()
		change(&q)
		if _, err := filesystem.Open(nil, t.TempDir(), q); err == nil {
			t.Errorf("%+v is taken", q)
		}
	}
}
