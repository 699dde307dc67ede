package filesystem_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/filesystem"
)

const secret = "the oracle's secret"

// outside makes a directory beside the roots that no call may read or change,
// fills the roots with ways to try, and returns a check.
func (g *guest) outside() (check func()) {
	g.t.Helper()
	dir := filepath.Join(g.base, "outside")
	writeFile(g.t, dir+"/secret", secret)
	writeFile(g.t, dir+"/dir/inner", secret)
	must(g.t, os.Mkdir(dir+"/empty", 0o755))
	for _, root := range []string{g.ro, g.rw} {
		writeFile(g.t, root+"/plain", "plain")
		writeFile(g.t, root+"/sub/deep/file", "file")
		for name, target := range map[string]string{
			"out": "../outside", "abs": dir, "outfile": "../outside/secret", "absfile": dir + "/secret",
			"up": "..", "upup": "../..", "root": "/", "dot-out": "./../outside/./dir/..", "none": "../outside/nothing",
			"through": "sub/../../outside", "absnone": dir + "/nothing", "loop": "loop", "ping": "pong", "pong": "ping",
			"sub/out": "../../outside", "sub/deep/out": "../../../outside", "chain1": "chain2", "chain2": "out",
			"slash": "../outside/", "etc": "/etc/passwd", "proc": "/proc/self/root", "cwd": "/proc/self/cwd",
			"self": "../" + filepath.Base(root) + "/../outside", "emptydir": "../outside/empty",
		} {
			must(g.t, os.Symlink(target, filepath.Join(root, name)))
		}
	}
	before := snapshot(g.t, dir)
	return func() {
		g.t.Helper()
		if diff := cmp.Diff(before, snapshot(g.t, dir)); diff != "" {
			g.t.Errorf("outside has changed: %s", diff)
		}
	}
}

// snapshot returns names, types, times and contents below a directory.
func snapshot(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if d.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			content = string(b)
		}
		list = append(list, fmt.Sprintf("%s %v %v %q", p, fi.Mode(), fi.ModTime(), content))
		return nil
	}))
	return list
}

// hostilePaths are ways out, each with what an open answers. Names of links
// are those of outside.
func hostilePaths() map[string]answer {
	long := strings.Repeat("n", abi.MaxFileName+1)
	paths := map[string]answer{
		"": invalid, "/": denied, "//": denied, "/etc/passwd": denied, "/plain": denied, "//etc/passwd": denied,
		"..": denied, "../": denied, "../..": denied, "./..": denied, "sub/../..": denied, "../outside/secret": denied,
		"sub/../../outside/secret": denied, "sub/deep/../../../outside/secret": denied, ".././outside/secret": denied,
		"nothing/../../outside/secret": denied, "out/../../outside/secret": denied, "./../ro/plain": denied,
		"../rw/plain": denied, "..//outside/secret": denied, "sub//..//..//outside/secret": denied,
		"sub/./../../outside": denied, "pl\x00ain": denied, "\x00": denied, "plain\x00": denied, "plain\x00/../..": denied,
		"sub/\x00/x": denied, "\xff": denied, "sub/\xc3\x28": denied, "a\xed\xa0\x80": denied,
		"\xc0\xae\xc0\xae/outside": denied, "\xc0\xaf": denied, long: denied, "sub/" + long: denied, long + "/x": denied,
		strings.Repeat("a/", abi.MaxFileComponents) + "b":          denied,
		strings.Repeat("x", abi.MaxFilePath+1):                     denied,
		strings.Repeat("./", abi.MaxFilePath/2) + "plain":          denied,
		strings.Repeat("a/../", 1000) + "../outside/secret":        denied,
		strings.Repeat("../", 64) + "etc/passwd":                   denied,
		strings.Repeat("a/", 60) + strings.Repeat("../", 61) + "x": denied,

		// Through links: denied whether or not there is something at the end.
		"out": denied, "out/": denied, "out/.": denied, "out/secret": denied, "out/secret/": denied, "out//secret": denied,
		"out/nothing": denied, "out/dir": denied, "out/dir/": denied, "out/dir/inner": denied, "out/new": denied,
		"out/empty/new": denied, "abs": denied, "abs/": denied, "abs/secret": denied, "abs/nothing": denied,
		"abs/dir/inner": denied, "outfile": denied, "outfile/": denied, "outfile/.": denied,
		"absfile": denied, "absfile/": denied, "up": denied, "up/": denied, "up/outside/secret": denied,
		"up/ro/plain": denied, "upup": denied, "upup/x": denied, "root": denied, "root/": denied, "root/etc/passwd": denied,
		"root/proc/self/environ": denied, "dot-out": denied, "dot-out/secret": denied, "none": denied, "none/": denied,
		"absnone": denied, "absnone/": denied, "through": denied, "through/secret": denied, "self": denied,
		"self/secret": denied, "sub/out": denied, "sub/out/secret": denied, "sub/deep/out/secret": denied,
		"sub/deep/../out/secret": denied, "chain1": denied, "chain1/": denied, "chain1/secret": denied,
		"chain2/secret": denied, "slash": denied, "slash/": denied, "slash/secret": denied, "etc": denied, "proc": denied,
		"proc/etc/passwd": denied, "cwd": denied, "cwd/": denied, "emptydir": denied, "emptydir/": denied,
		"emptydir/x": denied, "loop": loop, "loop/": loop, "loop/x": loop, "ping": loop, "ping/pong": loop,
		"plain/": notDir, "plain/.": notDir, "plain/x": notDir,
	}
	for n := range 8 {
		paths[strings.Repeat("../", n+1)+"outside/secret"] = denied
		paths["sub/"+strings.Repeat("../", n+2)+"outside/secret"] = denied
	}
	return paths
}

// No path reaches anything outside, whatever is done with it.
func TestHostilePaths(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	check := g.outside()
	paths := hostilePaths()
	if len(paths) < 100 {
		t.Fatalf("only %d paths", len(paths))
	}
	for path, want := range paths {
		for _, mount := range []uint32{ro, rw} {
			g.hostile(mount, path, want)
		}
	}
	check()
	for _, root := range []string{g.ro, g.rw} {
		if b, err := os.ReadFile(root + "/plain"); err != nil || string(b) != "plain" {
			t.Errorf("%s: %q %v", root, b, err)
		}
	}
}

// hostile tries every operation on a path.
func (g *guest) hostile(mount uint32, path string, want answer) {
	g.t.Helper()
	what := fmt.Sprintf("mount %d, path %.60q: ", mount, path)
	p, a := g.openFile(mount, path, abi.FileRead, abi.FileBlock)
	g.want(what+"open", a, want)
	if bytes.Contains(p.Content, []byte("oracle")) {
		g.t.Errorf("%s read the secret", what)
	}
	_, a = g.stat(mount, path)
	g.want(what+"stat", a, want)
	if mount == ro && want != invalid {
		want = denied // before anything else, except for a path that is none
	}
	never := func(op string, a answer) {
		g.t.Helper()
		if a == ok {
			g.t.Errorf("%s%s works", what, op)
		}
		if mount == ro {
			g.want(what+op, a, want)
		}
	}
	for op, flags := range map[string]abi.FileFlags{
		"write": abi.FileWrite, "create": abi.FileWrite | abi.FileCreate, "truncate": abi.FileWrite | abi.FileTruncate,
		"create new": abi.FileWrite | abi.FileCreate | abi.FileExclusive, "read and create": abi.FileRead | abi.FileCreate,
	} {
		_, a := g.openFile(mount, path, flags, 0)
		never(op, a)
	}
	never("mkdir", g.path(abi.CallFileMkdir, mount, path))
	never("rmdir", g.path(abi.CallFileRmdir, mount, path))
	never("times", g.times(mount, path))
	never("rename from", g.rename(mount, path, "taken"))
	link := filepath.Join(g.rw, path)
	target, notLink := os.Readlink(link)
	if a := g.rename(mount, "sub/deep/file", path); a == ok {
		// Only a symlink itself can be replaced, never what it points to.
		if mount == ro || notLink != nil {
			g.t.Errorf("%s rename to works", what)
		}
		must(g.t, os.Remove(link))
		must(g.t, os.Symlink(target, link))
		writeFile(g.t, g.rw+"/sub/deep/file", "file")
	}
}

// Links inside the root work, with a slash at the end too.
func TestLinksInside(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	for _, root := range []string{g.ro, g.rw} {
		writeFile(t, root+"/dir/file", "content")
		must(t, os.Symlink("dir", root+"/link"))
		must(t, os.Symlink("dir/file", root+"/filelink"))
		must(t, os.Symlink("../dir/file", root+"/dir/updown"))
		must(t, os.Symlink("gone", root+"/dangling"))
	}
	for _, path := range []string{"link/file", "filelink", "dir/updown", "link/updown",
		"link/../dir/file", "./link//file"} {
		p, a := g.openFile(ro, path, abi.FileRead, abi.FileBlock)
		g.want(path, a, ok)
		if string(p.Content) != "content" || p.Handle != 0 {
			t.Errorf("%s: content %q, handle %d", path, p.Content, p.Handle)
		}
	}
	for _, path := range []string{"link", "link/", "link/."} {
		list, a := g.list(ro, path)
		g.want(path, a, ok)
		if len(list) != 2 {
			t.Errorf("%s: %v", path, list)
		}
	}
	_, a := g.openFile(ro, "filelink/", abi.FileRead, 0)
	g.want("a file with a slash", a, notDir)
	_, a = g.openFile(ro, "link", abi.FileRead|abi.FileNoFollow, 0)
	g.want("a link not to be followed", a, loop)
	_, a = g.openFile(ro, "dangling", abi.FileRead, 0)
	g.want("a dangling link", a, absent)
	_, a = g.openFile(rw, "dangling", abi.FileWrite|abi.FileCreate, 0)
	g.want("creating through a dangling link", a, denied)
	_, a = g.openFile(rw, "dangling", abi.FileWrite|abi.FileCreate|abi.FileExclusive, 0)
	g.want("creating through a dangling link, exclusively", a, exists)

	st, a := g.lstat(ro, "link")
	g.want("lstat", a, ok)
	if st.Kind != abi.FileSymlink || st.Size != 0 {
		t.Errorf("lstat of a link says %+v", st)
	}
	st, a = g.lstat(ro, "link/")
	g.want("lstat with a slash", a, ok)
	if st.Kind != abi.FileFolder {
		t.Errorf("lstat with a slash says %+v", st)
	}
	g.want("removing a link", g.path(abi.CallFileUnlink, rw, "link"), ok)
	g.want("moving a link", g.rename(rw, "filelink", "moved"), denied)
	if _, err := os.Stat(g.rw + "/dir/file"); err != nil {
		t.Error(err)
	}
}

// CVE-2026-39822 and its relatives, by operation: a link out of the root
// with a slash at the end.
func TestTrailingSlashOnALinkOut(t *testing.T) {
	g := newGuest(t, filesystem.DefaultQuotas())
	check := g.outside()
	for _, path := range []string{"out/", "abs/", "outfile/", "emptydir/", "none/", "out/./", "chain1//"} {
		for op, a := range map[string]answer{
			"open":   second(g.openFile(rw, path, abi.FileRead, abi.FileBlock)),
			"create": second(g.openFile(rw, path, abi.FileWrite|abi.FileCreate, 0)),
			"rename": g.rename(rw, path, "taken"),
			"onto":   g.rename(rw, "sub/deep", path),
			"remove": g.path(abi.CallFileUnlink, rw, path),
			"rmdir":  g.path(abi.CallFileRmdir, rw, path),
			"mkdir":  g.path(abi.CallFileMkdir, rw, path),
			"stat":   second(g.stat(rw, path)),
			"lstat":  second(g.lstat(rw, path)),
			"times":  g.times(rw, path),
		} {
			if a == ok {
				t.Errorf("%s %s works", op, path)
			}
		}
	}
	check()
}

func second[T any](_ T, a answer) answer { return a }
