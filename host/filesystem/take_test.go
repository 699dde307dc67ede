//go:build unix

package filesystem_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/store"
)

// The host takes of the guest's files what the guest could read itself, and
// nothing beside its mounts.
func TestTake(t *testing.T) {
	dir, beside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.pdf"), []byte("paper"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(beside, "secret"), []byte("secret"), 0o600))
	must(t, os.Symlink(filepath.Join(beside, "secret"), filepath.Join(dir, "link")))
	must(t, mkfifo(filepath.Join(dir, "pipe")))
	root, err := filesystem.Approve(dir, false, "")
	must(t, err)
	fs, err := filesystem.Open([]store.Mount{named(root, "in")}, filepath.Join(t.TempDir(), "scratch"),
		filesystem.DefaultQuotas())
	must(t, err)
	defer fs.Close()
	for path, want := range map[string]string{
		"/in/a.pdf": "paper", "/in/./sub/../a.pdf": "paper",
		"/in/sub": "", "/in/": "", "/in": "", "/in/link": "", "/in/pipe": "", "/in/../secret": "",
		"/in/nothing": "", "/tmp/nothing": "", "in/a.pdf": "", "": "", "/": "", "/other/a.pdf": "", "/in/a.pdf\x00": "",
		"/inner": "", filepath.Join(dir, "a.pdf"): "",
	} {
		f, err := fs.Take(path)
		if (err == nil) != (want != "") {
			t.Errorf("%q: %v", path, err)
		}
		if err != nil {
			continue
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != want {
			t.Errorf("%q: %q, %v", path, b, err)
		}
		must(t, f.Close())
	}
}
