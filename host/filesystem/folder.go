package filesystem

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host"
)

// Limits of one Folder: directories that are listed, and entries that are read.
const (
	maxFolders = 500
	maxEntries = 20_000
)

// Folder lists the subdirectories of one, for an owner who chooses; it is never called for
// a guest. The result has the path with links resolved, and leaves out links, hidden
// directories and names that cannot be typed. For the kernel's trees and the data directory
// the error wraps ErrRefused.
func Folder(path, dataDir string) (host.Folder, error) {
	if path == "" {
		path = "~"
	}
	if path = Home(path); !plainPath(path) {
		return host.Folder{}, errors.New("list a directory: not a plain absolute path")
	}
	real, err := resolve(path)
	if err != nil {
		return host.Folder{}, fmt.Errorf("list %s: %w", path, err)
	}
	if private(real, dataDir) {
		return host.Folder{}, fmt.Errorf("list %s: %w", path, ErrRefused)
	}
	out := host.Folder{Path: real, Refused: refusal(real, dataDir)}
	if up := filepath.Dir(real); up != real {
		out.Parent = up
	}
	out.Names, out.More, err = folders(real, dataDir)
	return out, err
}

// plainPath reports whether a path is absolute, clean and unambiguous.
func plainPath(p string) bool {
	return len(p) <= maxHostPath && filepath.IsAbs(p) && filepath.Clean(p) == p &&
		!strings.ContainsRune(p, 0) && utf8.ValidString(p)
}

// private reports whether a resolved directory belongs to the kernel or to the host.
func private(real, dataDir string) bool {
	for _, d := range wholeTrees {
		if within(real, d) {
			return true
		}
	}
	return dataDir != "" && within(real, resolveExisting(dataDir))
}

// folders lists the subdirectories of a resolved directory. If that is replaced by a link
// meanwhile, only names of directories are shown, to their owner.
func folders(real, dataDir string) (names []string, more bool, err error) {
	if fi, err := os.Lstat(real); err != nil || !fi.IsDir() {
		return nil, false, errors.Join(err, fmt.Errorf("list %s: it is not a directory", real))
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	hidden := wholeTrees // other ways to it lead to what private refuses
	if dataDir != "" {
		hidden = append(slices.Clone(hidden), resolveExisting(dataDir))
	}
	for looked := 0; len(names) < maxFolders; {
		if looked >= maxEntries {
			more = true
			break
		}
		list, err := f.ReadDir(1000)
		if errors.Is(err, io.EOF) || err == nil && len(list) == 0 {
			break
		}
		if err != nil {
			return nil, false, err
		}
		looked += len(list)
		for _, e := range list {
			if e.IsDir() && shown(e.Name()) && !slices.Contains(hidden, filepath.Join(real, e.Name())) {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	if len(names) > maxFolders {
		names, more = names[:maxFolders], true
	}
	return names, more, nil
}

// shown reports whether a name is visible and can be typed.
func shown(name string) bool {
	return !strings.HasPrefix(name, ".") && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, unicode.IsControl)
}
