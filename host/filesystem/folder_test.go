package filesystem_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/filesystem"
)

// Folder shows directories to choose from, and no way around what may not be shown.
func TestFolder(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	home, data := filepath.Join(base, "owner"), filepath.Join(base, "owner", "data")
	for _, d := range []string{data + "/db", home + "/Documents/2026", home + "/.ssh", home + "/a\nb", home + "/ends ",
		home + "/\xff", home + "/<b>&", base + "/elsewhere/secret"} {
		must(t, os.MkdirAll(d, 0o755))
	}
	writeFile(t, home+"/file", "x")
	must(t, os.Symlink(base+"/elsewhere", home+"/link"))
	must(t, os.Symlink(data, home+"/Documents/data"))
	must(t, os.Symlink("/proc", home+"/Documents/kernel"))
	t.Setenv("HOME", home)

	for _, path := range []string{"", "~", home} {
		f, err := filesystem.Folder(path, data)
		if err != nil || f.Path != home || f.Parent != base || f.Refused == "" || f.More ||
			!slices.Equal(f.Names, []string{"<b>&", "Documents"}) {
			t.Errorf("%q: %+v %v", path, f, err)
		}
	}
	if f, err := filesystem.Folder("~/Documents", data); err != nil || f.Refused != "" ||
		!slices.Equal(f.Names, []string{"2026"}) {
		t.Errorf("%+v %v", f, err)
	}
	if f, err := filesystem.Folder(home+"/link", data); err != nil || f.Path != base+"/elsewhere" {
		t.Errorf("a link is shown under its own name: %+v %v", f, err)
	}
	if f, err := filesystem.Folder("/", data); err != nil || f.Parent != "" || f.Refused == "" ||
		slices.Contains(f.Names, "proc") || slices.Contains(f.Names, "sys") {
		t.Errorf("%+v %v", f, err)
	}
	for _, path := range []string{data, data + "/db", home + "/Documents/data", home + "/Documents/data/db",
		home + "/Documents/kernel", "/proc/self", "/proc/self/root", "/sys"} {
		if f, err := filesystem.Folder(path, data); !errors.Is(err, filesystem.ErrRefused) &&
			!(path == "/proc/self/root" && f.Path == "/") {
			t.Errorf("%s: %+v %v", path, f, err)
		}
	}
	for _, path := range []string{"relative", "../up", home + "/../owner", home + "//Documents", home + "/.",
		home + "/file", home + "/none", home + "\x00", "~other", "\\\\server\\share", "/" + strings.Repeat("x", 5000)} {
		if f, err := filesystem.Folder(path, data); err == nil {
			t.Errorf("%.40q: %+v", path, f)
		}
	}
}

// A directory with more than anybody looks through says so.
func TestFolderIsBounded(t *testing.T) {
	base := t.TempDir()
	for i := range 1200 {
		must(t, os.Mkdir(fmt.Sprintf("%s/d%04d", base, i), 0o755))
	}
	if f, err := filesystem.Folder(base, ""); err != nil || len(f.Names) != 500 || !f.More || !slices.IsSorted(f.Names) {
		t.Errorf("%d directories, more: %t, %v", len(f.Names), f.More, err)
	}
}
