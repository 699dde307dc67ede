package app

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIdentify: the installation keeps its id; what a power cut or a flipped bit
// made of it is replaced, never used.
func TestIdentify(t *testing.T) {
	dir := t.TempDir()
	id := func() string {
		t.Helper()
		h := newHost(&directory{DataDir: dir, Options: Options{}.settled()})
		if err := h.identify(); err != nil {
			t.Fatal(err)
		}
		if !isID("host_", h.ID) {
			t.Fatalf("the id is %q", h.ID)
		}
		return h.ID
	}
	first := id()
	if again := id(); again != first {
		t.Errorf("the id was %s and is %s", first, again)
	}
	for _, bad := range []string{"", "host_", "host_0123", "lost_0123456789abcdef", first + "0",
		"host_\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		if err := os.WriteFile(filepath.Join(dir, "host-id"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		made := id()
		if made == bad || id() != made {
			t.Errorf("in place of %q there is %q, and it does not stay", bad, made)
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
		t.Errorf("files left: %v, %v", names, err)
	}
}
