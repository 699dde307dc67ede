//go:build unix

package private_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sluicehost/sluice/host/private"
)

var errUnsafe = errors.New("unsafe")

// A file that others can reach, a link and a pipe are refused, and opening none of them
// waits.
func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	at := func(name string) string { return filepath.Join(dir, name) }
	err = errors.Join(os.WriteFile(at("own"), []byte("x"), 0o600),
		os.WriteFile(at("open"), []byte("x"), 0o644), os.Chmod(at("open"), 0o644), os.Symlink("own", at("link")),
		syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("directory"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	f, fi, err := private.OpenFile(root, "own", at("own"), os.O_RDONLY, errUnsafe)
	if err != nil || fi.Size() != 1 {
		t.Fatalf("own file: %v", err)
	}
	defer f.Close()
	for _, name := range []string{"open", "link", "pipe", "directory"} {
		if _, _, err := private.OpenFile(root, name, at(name), os.O_RDONLY, errUnsafe); !errors.Is(err, errUnsafe) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(private.Sync(root), private.SyncPath(dir)); err != nil {
		t.Error(err)
	}
}

// Readers share a directory; a writer waits for them.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	lock := func(shared bool) (release func()) {
		f, err := os.Open(dir)
		if err != nil {
			t.Error(err)
		}
		done, err := private.Lock(f, shared)
		if err != nil {
			t.Error(err)
		}
		return func() { done(); f.Close() }
	}
	one, two := lock(true), lock(true)
	written := make(chan struct{})
	go func() { lock(false)(); close(written) }()
	one()
	select {
	case <-written:
		t.Error("a writer had the lock beside a reader")
	default:
	}
	two()
	<-written
}
