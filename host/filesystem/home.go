package filesystem

import (
	"os"
	"path/filepath"
	"strings"
)

// Home replaces a leading ~ or ~/ with the home of the host's user and returns other paths
// unchanged. Paths from a page or a program have not passed a shell.
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
