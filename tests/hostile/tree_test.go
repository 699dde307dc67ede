//go:build unix

package hostile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/hostile/corpus"
)

// tree plants the files of the file attacks and approves their root. After the test
// everything outside of it must be unchanged.
func tree(t *testing.T, h *app.Host) store.Mount {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir)
	before := outside(t, dir)
	t.Cleanup(func() {
		if diff := cmp.Diff(before, outside(t, dir)); diff != "" {
			t.Errorf("files outside of the approved directory changed (-before +after):\n%s", diff)
		}
	})
	m, err := filesystem.ApproveMount("data", filepath.Join(dir, corpus.TreeRoot), true, h.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// plant builds the tree of the file attacks below dir.
func plant(t *testing.T, dir string) {
	t.Helper()
	for _, e := range corpus.Tree() {
		path := filepath.Join(dir, e.Path)
		var err error
		switch e.Kind {
		case corpus.TreeFolder:
			err = os.Mkdir(path, 0o700)
		case corpus.TreeFile:
			err = os.WriteFile(path, []byte(e.Content), 0o600)
		case corpus.TreeSymlink:
			err = os.Symlink(e.Content, path)
		case corpus.TreeHardLink:
			err = os.Link(filepath.Join(dir, e.Content), path)
		case corpus.TreeFIFO:
			err = makeFIFO(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// outside lists everything in the tree that no connector may see, with its content.
func outside(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, top := range []string{"outside.txt", "elsewhere/other.txt"} {
		b, err := os.ReadFile(filepath.Join(dir, top))
		if err != nil {
			t.Fatal(err)
		}
		seen[top] = string(b)
	}
	for _, folder := range []string{".", "elsewhere"} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			seen[filepath.Join(folder, e.Name())+" "] = e.Type().String()
		}
	}
	return seen
}
