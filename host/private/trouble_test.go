//go:build unix

package private_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/private"
)

// TestTrouble: what is in the way of a path is named, with what to do about it.
func TestTrouble(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), nil, 0o600))
	must(os.Symlink("gone", at("link")))
	must(os.Symlink(at("file"), at("tofile")))
	must(os.Mkdir(at("directory"), 0o700))
	mkdir := func(name string) error { return os.MkdirAll(at(name), 0o700) }
	_, readsFile := os.ReadDir(at("file"))
	_, opensLink := os.OpenFile(at("link/lock"), os.O_CREATE|os.O_RDWR, 0o600)
	_, opensDirectory := os.OpenFile(at("directory"), os.O_RDWR, 0)
	_, opensNothing := os.Open(at("nothing/at/all"))
	_, exists := os.OpenFile(at("file"), os.O_CREATE|os.O_EXCL, 0o600)
	open, err := os.Stat(at("directory"))
	must(err)
	unsafe := private.Check(open, at("directory"), 0, errUnsafe)
	denied := &os.PathError{Op: "open", Path: at("file"), Err: os.ErrPermission}
	for _, c := range []struct {
		err  error
		want string
	}{
		{mkdir("file"), at("file") + " is a file, and a directory has to be there; move it away"},
		{mkdir("file/below/it"), at("file") + " is a file"},
		{mkdir("tofile"), at("tofile") + " is a file"},
		{mkdir("link"), at("link") + " is a link to gone, which is not there"},
		{mkdir("link/below"), at("link") + " is a link to gone, which is not there"},
		{opensLink, at("link") + " is a link to gone"},
		{readsFile, at("file") + " is a file"},
		{opensDirectory, at("directory") + " is a directory, and a file has to be there; move it away"},
		{unsafe, "unsafe: " + at("directory") + " is no regular file; move it away"},
		{denied, "may not use " + at("file")},
		{opensNothing, ""}, {exists, ""}, {errors.New("something else"), ""}, {nil, ""},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("do this: %w", err)
		}
		if got := private.Trouble(err); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", err, got, c.want)
		}
	}
}
