package sandbox

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/jail"
)

// Names in the cache's directory. An entry is a directory with the hexadecimal
// key for a name:
//
//	KEY/entry.json           what belongs here, authenticated
//	KEY/code/ENGINE/FILE     machine code, as the engine looks for it
//	KEY.lock                 held while KEY is made
//	new-*, compile-*         unfinished; removed at open
//	hmac.key                 authenticates entries, unless the host gives a key
const (
	entryFile   = "entry.json"
	codeDir     = "code"
	lockSuffix  = ".lock"
	newPrefix   = "new-"
	buildPrefix = "compile-"
	keyFile     = "hmac.key"
	keyBytes    = 32
)

// Code is compiled code of one module, in the cache. It is a small value to keep
// beside the module; the zero Code has none.
type Code struct {
	key string
}

// A cache keeps compiled code under keys that name the module, the engine and
// the machine (S38). Several processes may use one directory.
type cache struct {
	dir       string
	key       []byte
	group     int // the workers' group, -1 without
	most      int64
	mostEntry int64
	audit     func(string, map[string]string)
	log       *slog.Logger

	mu       sync.Mutex // guards what follows
	verified map[string]*entry
	flights  map[string]*flight
}

// An entry is what this process has verified of a key.
type entry struct {
	stamp    stamp    // the file as it was then
	size     int64    // of the code
	dir      string   // the directory workers are given
	path     string   // the file
	skeleton *os.File // sealed; what run workers are given for the module
}

// flight is one preparation that others wait for (S37).
type flight struct {
	done chan struct{}
	err  error
}

// openCache makes the directory fit for use. Anything that another user could
// have written makes the whole content worthless (S40).
func openCache(o Options, group int) (*cache, error) {
	c := &cache{
		dir: o.CacheDir, key: o.CacheKey, group: group, most: o.CacheBytes, mostEntry: o.EntryBytes,
		audit: o.Audit, log: o.Log, verified: map[string]*entry{}, flights: map[string]*flight{},
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	if why := c.suspicious(); why != "" {
		c.audit("cache_dropped", map[string]string{"reason": why})
		if err := c.empty(); err != nil {
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

// dirMode and fileMode: the workers of a root host read through their group.
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

// allowed is the loosest mode that path may have. The top is put right at open,
// so there only what others could have written counts.
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
	return len(name) > len(buildPrefix) && name[:len(buildPrefix)] == buildPrefix
}

// empty removes everything in the directory.
func (c *cache) empty() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, e.Name())))
	}
	return err
}

// sweep removes what earlier processes left unfinished. What is younger than an
// hour may belong to one that still works.
func (c *cache) sweep() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		info, infoErr := e.Info()
		unfinished := isBuild(e.Name()) || len(e.Name()) > len(newPrefix) && e.Name()[:len(newPrefix)] == newPrefix
		if infoErr == nil && unfinished && time.Since(info.ModTime()) > time.Hour {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, e.Name())))
		}
	}
	return err
}

// loadKey reads the key, or makes it. Two processes that make it at once agree
// on the first one.
func loadKey(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(key)
		return key, errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	key, err = os.ReadFile(path)
	if err == nil && len(key) != keyBytes {
		err = errors.Join(fmt.Errorf("key of %d bytes, want %d", len(key), keyBytes), os.Remove(path))
	}
	return key, err
}

// keyOf is the name of an entry (S38).
func keyOf(module, engine string) string {
	h := sha256.New()
	for _, part := range []string{"sluice compiled code 1", module, engine, machine()} {
		fmt.Fprintf(h, "%d:%s;", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// open returns the files that a run worker of code is given, for the caller to
// close: module bytes and the directory. errBadEntry: there is no usable entry.
func (c *cache) open(code Code) ([]*os.File, int64, error) {
	e, err := c.verify(code.key)
	if err != nil {
		return nil, 0, err
	}
	skeleton, err := duplicate(e.skeleton)
	if err != nil {
		return nil, 0, launchFailure(err)
	}
	dir, err := os.Open(e.dir)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%w: %w", errBadEntry, err), skeleton.Close())
	}
	return []*os.File{skeleton, dir}, e.size, nil
}

// verify returns the entry if this process has found it good before and the file
// has not changed since (S39).
func (c *cache) verify(key string) (*entry, error) {
	c.mu.Lock()
	e := c.verified[key]
	c.mu.Unlock()
	if e == nil {
		return nil, fmt.Errorf("%w: not prepared", errBadEntry)
	}
	now, err := stampOf(e.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadEntry, err)
	}
	if now == e.stamp {
		return e, nil
	}
	size, err := c.examine(key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := *e
	fresh.stamp, fresh.size = now, size
	c.verified[key] = &fresh
	return &fresh, nil
}

// inspect examines the entry on disk. An absent one is fs.ErrNotExist, a bad one
// errBadEntry.
func (c *cache) inspect(key string) (*entry, error) {
	path, err := c.codePath(key)
	if err != nil {
		return nil, err
	}
	before, err := stampOf(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errBadEntry, err) // there is an entry, so it is no matter of absence
	}
	size, err := c.examine(key)
	if err != nil {
		return nil, err
	}
	return &entry{stamp: before, size: size, path: path, dir: filepath.Join(c.dir, key, codeDir)}, nil
}

// adopt remembers an entry that was found good, with the skeleton that goes with it.
func (c *cache) adopt(key string, e *entry, skeleton []byte) (err error) {
	if e.skeleton, err = jail.MemFD("module", skeleton); err != nil {
		return err
	}
	c.mu.Lock()
	old := c.verified[key]
	c.verified[key] = e
	c.mu.Unlock()
	if old != nil {
		return old.skeleton.Close()
	}
	return nil
}

// touch marks the entry as used now.
func (c *cache) touch(key string) {
	now := time.Now()
	if err := os.Chtimes(filepath.Join(c.dir, key, entryFile), now, now); err != nil {
		c.log.Debug("compiled code not marked as used", "key", key, "err", err)
	}
}

// reject drops an entry that turned out to be bad, and says so (S39).
func (c *cache) reject(code Code, why error) {
	c.drop(code.key, why)
}

func (c *cache) drop(key string, why error) {
	c.audit("cache_entry_bad", map[string]string{"key": key, "reason": why.Error()})
	c.remove(key)
}

func (c *cache) remove(key string) {
	c.mu.Lock()
	e := c.verified[key]
	delete(c.verified, key)
	c.mu.Unlock()
	if e != nil {
		_ = e.skeleton.Close() // only read
	}
	if key == "" {
		return
	}
	if err := os.RemoveAll(filepath.Join(c.dir, key)); err != nil {
		c.log.Warn("compiled code not removed", "key", key, "err", err)
	}
}

// evict removes the least recently used entries until the cache is within its
// bound; keep stays.
func (c *cache) evict(keep string) {
	type used struct {
		key  string
		size int64
		at   time.Time
	}
	list, err := os.ReadDir(c.dir)
	if err != nil {
		c.log.Warn("cache not bounded", "err", err)
		return
	}
	var entries []used
	var total int64
	for _, d := range list {
		info, err := os.Stat(filepath.Join(c.dir, d.Name(), entryFile))
		if err != nil || !d.IsDir() {
			continue
		}
		m, err := readEntry(filepath.Join(c.dir, d.Name(), entryFile))
		if err != nil {
			continue
		}
		entries = append(entries, used{d.Name(), m.Size, info.ModTime()})
		total += m.Size
	}
	slices.SortFunc(entries, func(a, b used) int { return a.at.Compare(b.at) })
	for _, e := range entries {
		if total <= c.most {
			return
		}
		if e.key != keep {
			c.remove(e.key)
			total -= e.size
		}
	}
}

// close lets go of what is open.
func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.verified {
		_ = e.skeleton.Close() // only read
	}
	clear(c.verified)
}
