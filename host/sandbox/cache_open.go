package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// openCache prepares the directory. If another user could have written anything in it, all
// its content is dropped.
func openCache(o Options, group int) (*cache, error) {
	c := &cache{
		dir: o.CacheDir, key: o.CacheKey, group: group, most: o.CacheBytes, mostEntry: o.EntryBytes,
		audit: o.Audit, log: o.Log, verified: map[string]*entry{}, preparations: map[string]*preparation{},
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	if err := c.onlyOurs(); err != nil {
		return nil, err
	}
	if why := c.suspicious(); why != "" {
		c.audit("cache_dropped", map[string]string{"reason": why})
		if err := c.empty(); err != nil && c.suspicious() != "" { // unless another process dropped it
			return nil, fmt.Errorf("drop cache: %w", err)
		}
	}
	if err := errors.Join(os.Chmod(c.dir, c.dirMode()), c.share(c.dir)); err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	if err := c.sweep(); err != nil {
		return nil, fmt.Errorf("clean cache: %w", err)
	}
	if c.key == nil {
		var err error
		if c.key, err = loadKey(filepath.Join(c.dir, keyFile)); err != nil {
			return nil, fmt.Errorf("open cache: %w", err)
		}
	}
	return c, nil
}

// ErrNoCache says that the directory has files that are not a cache's. It is left
// unchanged, because an untrusted cache is deleted.
var ErrNoCache = errors.New("not a cache directory")

// onlyOurs returns ErrNoCache if the directory has other files.
func (c *cache) onlyOurs() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("open cache: %w", err)
	}
	for _, e := range list {
		if !isOurs(e.Name()) {
			return fmt.Errorf("%s: %w: %.60q is in it; SLUICE_CACHE takes an empty or a new directory", c.dir,
				ErrNoCache, e.Name())
		}
	}
	return nil
}

// isOurs reports whether a name is one of a cache's files (see cache).
func isOurs(name string) bool {
	if name == keyFile || isBuild(name) || strings.HasPrefix(name, newPrefix) {
		return true
	}
	sum, err := hex.DecodeString(strings.TrimSuffix(name, lockSuffix))
	return err == nil && len(sum) == sha256.Size
}

// dirMode and fileMode return modes; the workers of a root host read through their group.
func (c *cache) dirMode() fs.FileMode {
	if c.group >= 0 {
		return 0o750
	}
	return 0o700
}

func (c *cache) fileMode() fs.FileMode {
	if c.group >= 0 {
		return 0o640
	}
	return 0o600
}

// share gives path to the workers' group.
func (c *cache) share(path string) error {
	if c.group < 0 {
		return nil
	}
	return os.Lchown(path, -1, c.group)
}

// suspicious returns why nothing in the directory can be trusted, or "".
func (c *cache) suspicious() string {
	why := ""
	walk := func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile, or unreadable and thus of no use
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if path != c.dir && filepath.Dir(path) == c.dir && isBuild(d.Name()) {
			return fs.SkipDir // the workers' own; never used as it is
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			why = "a link at " + path
		case !owned(info):
			why = "another owner of " + path
		case info.Mode().Perm()&^c.allowed(path, d) != 0:
			why = "loose mode of " + path
		default:
			return nil
		}
		return fs.SkipAll
	}
	if err := filepath.WalkDir(c.dir, walk); err != nil {
		return err.Error()
	}
	return why
}

// allowed returns the loosest permitted mode of path. The mode of the top is corrected at
// open, so there only write access of others counts.
func (c *cache) allowed(path string, d fs.DirEntry) fs.FileMode {
	switch {
	case path == c.dir:
		return 0o755
	case d.IsDir():
		return c.dirMode()
	}
	return c.fileMode()
}

func isBuild(name string) bool {
	return len(name) > len(buildPrefix) && strings.HasPrefix(name, buildPrefix)
}

// empty removes everything in the directory.
func (c *cache) empty() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if isOurs(e.Name()) {
			err = errors.Join(err, removeTree(filepath.Join(c.dir, e.Name())))
		}
	}
	return err
}

// removeTree removes a file or directory of the cache.
func removeTree(path string) error {
	if isBuild(filepath.Base(path)) {
		return discard(path)
	}
	return os.RemoveAll(path)
}

// sweep removes unfinished files of earlier processes. Files younger than an hour may
// belong to one that is still running.
func (c *cache) sweep() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		info, infoErr := e.Info()
		unfinished := isBuild(e.Name()) || strings.HasPrefix(e.Name(), newPrefix)
		if infoErr == nil && unfinished && time.Since(info.ModTime()) > time.Hour {
			err = errors.Join(err, removeTree(filepath.Join(c.dir, e.Name())))
		}
	}
	return err
}

// loadKey reads the key, or makes it. Processes that make one at once agree on the first:
// the name appears only with the whole key. An invalid key, as after a power cut, is
// replaced; entries made with it become invalid.
func loadKey(path string) (key []byte, err error) {
	for range 2 {
		key, err = os.ReadFile(path)
		switch {
		case err == nil && len(key) == keyBytes:
			return key, nil
		case err == nil:
			err = os.Remove(path)
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		}
		if err == nil {
			err = makeKey(path)
		}
		if err != nil {
			return nil, err
		}
	}
	if key, err = os.ReadFile(path); err == nil && len(key) != keyBytes {
		err = fmt.Errorf("key of %d bytes, want %d", len(key), keyBytes)
	}
	return key, err
}

func makeKey(path string) error {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix) // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// discard removes the output of a compile worker that has ended. Directories may be nested
// to any depth, so it moves their contents up instead of recursing, and then removes them.
func discard(dir string) error {
	prefix := rand.Text() // no name of the worker's begins so
	moved := 0
	for {
		list, err := os.ReadDir(dir)
		if err != nil || len(list) == 0 {
			return errors.Join(err, os.Remove(dir))
		}
		for _, d := range list {
			path := filepath.Join(dir, d.Name())
			if d.IsDir() {
				if err := lift(path, func() string { moved++; return filepath.Join(dir, prefix+strconv.Itoa(moved)) }); err != nil {
					return err
				}
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
}

// lift moves everything out of dir, to the paths that next gives.
func lift(dir string, next func() string) error {
	if err := os.Chmod(dir, 0o700); err != nil { // #nosec G302: a directory, which its owner may have shut
		return err
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, d := range list {
		path := filepath.Join(dir, d.Name())
		if d.IsDir() {
			if err := os.Chmod(path, 0o700); err != nil { // #nosec G302: a directory; what is moved gets another parent, and is written
				return err
			}
		}
		if err := os.Rename(path, next()); err != nil {
			return err
		}
	}
	return nil
}
