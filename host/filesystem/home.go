package filesystem

import (
	"os"
	"path/filepath"
	"strings"
)

// Home is a path whose ~ stands for the home of the user who runs this process: ~
// itself and what begins with ~/. Shells do this only where the ~ begins a word
// without quotes, and a page or a program has no shell. Another path is as it was.
func Home(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return path
	}
	return filepath.Join(home, path[1:])
}
