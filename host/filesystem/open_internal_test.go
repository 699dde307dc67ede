package filesystem

import (
	"errors"
	"os"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// What was opened is compared with what was seen, in device, inode and
// type. The races of race_test.go hit the moment between only by luck.
func TestCheckComparesWhatWasOpened(t *testing.T) {
	f, err := Open(nil, t.TempDir(), DefaultQuotas())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := f.mounts[0]
	for _, name := range []string{"seen", "other"} {
		if err := m.root.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := m.find(guestPath{name: "seen", depth: 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"seen": nil, "other": errChanged, ".": errChanged} {
		file, err := m.root.OpenFile(name, os.O_RDONLY|openSafely, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.check(file, seen, abi.FileRead); !errors.Is(err, want) {
			t.Errorf("saw seen, opened %s: %v, want %v", name, err, want)
		}
		file.Close()
	}
}

// The table of names that Windows takes for something else.
func TestWindowsNames(t *testing.T) {
	for name, want := range map[string]bool{
		"CON": true, "con.txt": true, "Aux": true, "nul.tar.gz": true, "COM1": true, "lpt9.x": true, "COM\u00b9": true,
		"prn ": true, "CON .txt": true, "file.": true, "file ": true, "a:b": true, `a\b`: true, "c:": true,
		"file:$DATA": true, "conin$": true, "console": false, "com": false, "com10": false, "COMx": false, "lpt": false,
		"a.b": false, ".git": false, "nulls": false,
	} {
		if got := windowsName(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

// Should the standard library word its refusal anew, the guest still gets an
// errno, and this test says that the table wants a look.
func TestEscapeErrorIsFound(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Symlink("/etc/passwd", "link"); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Stat("link"); !errors.Is(err, escapeError(root)) {
		t.Errorf("got %v, want what .. gives", err)
	}
}
