package filesystem

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// ErrRefused is wrapped by Approve for a directory that no owner can approve.
var ErrRefused = errors.New("directory refused")

// ErrMountChanged is wrapped by Open if a root is no longer the approved directory. Its
// text is the reason code of the run.
var ErrMountChanged = errors.New("mount_changed")

// wholeTrees are refused with everything below, because they show the kernel, not files;
// exactDirs only themselves.
var (
	wholeTrees = []string{"/proc", "/sys", "/dev"}
	exactDirs  = []string{"/", "/run", "/etc", "/boot"}
	homeDirs   = []string{"/home", "/Users"}
)

// Approve resolves path and returns it as a mount without a name. Only an owner's decision
// may lead to a call, never a guest. dataDir is the data directory of the host, or "".
//
// Errors name the path, the reason and what to do; those for directories that
// can never be approved wrap ErrRefused.
func Approve(path string, writable bool, dataDir string) (store.Mount, error) {
	real, err := resolve(path)
	if err != nil {
		return store.Mount{}, fmt.Errorf("approve %s: %w: name an existing directory", path, err)
	}
	fi, err := os.Lstat(real)
	if err != nil {
		return store.Mount{}, fmt.Errorf("approve %s: %w", path, err)
	}
	if !fi.IsDir() {
		return store.Mount{}, fmt.Errorf("approve %s: it is not a directory: approve the directory that holds it", path)
	}
	if reason := refusal(real, dataDir); reason != "" {
		return store.Mount{}, fmt.Errorf(
			"approve %s: %w: it %s: approve a directory that holds only what the connector may see", path, ErrRefused, reason)
	}
	id, ok := identify(fi)
	if !ok {
		return store.Mount{}, fmt.Errorf("approve %s: %w: this system has no device and inode numbers to recognise it by",
			path, ErrRefused)
	}
	return store.Mount{Path: real, Writable: writable, Device: id.device, Inode: id.inode}, nil
}

// Reaches reports whether an approved directory still exists and is the same directory.
func Reaches(m store.Mount) bool {
	fi, err := os.Lstat(m.Path)
	if err != nil {
		return false
	}
	id, ok := identify(fi)
	return ok && id.device == m.Device && id.inode == m.Inode
}

// resolve makes path absolute and free of symlinks.
func resolve(path string) (string, error) {
	if path == "" {
		return "", errors.New("empty path")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// refusal returns why an owner cannot approve a resolved directory, or "".
func refusal(real, dataDir string) string {
	for _, d := range wholeTrees {
		if within(real, d) {
			return "belongs to " + d
		}
	}
	for _, d := range exactDirs {
		if same(real, d) {
			return "is " + d
		}
	}
	for _, d := range homeDirs {
		if same(real, d) || same(filepath.Dir(real), d) {
			return "is a user's home itself"
		}
	}
	for _, d := range homes() {
		switch {
		case same(d, real):
			return "is the home " + d
		case within(d, real):
			return "contains the home " + d
		}
	}
	if dataDir == "" {
		return ""
	}
	data := resolveExisting(dataDir)
	if within(real, data) {
		return "lies in the data directory"
	}
	if within(data, real) {
		return "contains the data directory"
	}
	return ""
}

// homes returns the home directories of the host's user.
func homes() []string {
	found := []string{"/root"}
	if h, err := os.UserHomeDir(); err == nil {
		found = append(found, h)
	}
	if u, err := user.Current(); err == nil && u.HomeDir != "" {
		found = append(found, u.HomeDir)
	}
	for i, h := range found {
		if real, err := resolve(h); err == nil {
			found[i] = real
		}
	}
	return slices.DeleteFunc(found, func(h string) bool { return h == "/" || !filepath.IsAbs(h) })
}

// resolveExisting resolves the existing part of a path and keeps the rest, so that a data
// directory that is not yet made is protected too.
func resolveExisting(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// within reports whether a directory is dir or lies below it, by name or, for
// a directory that is mounted in two places, by identity.
func within(path, dir string) bool {
	if path == dir || dir == "/" || strings.HasPrefix(path, dir+string(filepath.Separator)) {
		return true
	}
	for p := path; ; p = filepath.Dir(p) {
		if same(p, dir) {
			return true
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

// same reports whether two paths name one directory.
func same(a, b string) bool {
	if a == b {
		return true
	}
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}
