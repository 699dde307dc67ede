package filesystem

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
)

// FuzzPath: what passes is below the root, in the one form that the standard
// library has for it, and within the limits; it passes again as itself.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a/b", "./a//b/", "a/../b", "../a", "a/../../b", "/etc", "", ".", "a/..", "a\x00b",
		strings.Repeat("a/", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		got, err := parsePath(p)
		if err != nil {
			if !errors.Is(err, refuse(abi.EDENIED)) && !errors.Is(err, refuse(abi.EINVAL)) {
				t.Fatalf("%q: %v", p, err)
			}
			return
		}
		if !fs.ValidPath(got.name) || got.name != path.Clean(p) {
			t.Fatalf("%q passed as %q", p, got.name)
		}
		depth := strings.Count(got.name, "/") + 1
		if got.name == "." {
			depth = 0
		}
		if got.depth != depth || depth > abi.MaxFileComponents || len(got.name) > abi.MaxFilePath {
			t.Fatalf("%q has depth %d, not %d", p, got.depth, depth)
		}
		if again, err := parsePath(got.name); err != nil || again.name != got.name {
			t.Fatalf("%q passed as %q, and that as %q: %v", p, got.name, again.name, err)
		}
		if up := got.parent(); depth > 0 && !fs.ValidPath(up.name) {
			t.Fatalf("the parent of %q is %q", got.name, up.name)
		}
	})
}
