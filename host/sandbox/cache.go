package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// Code identifies the compiled code of one module in the cache. The zero Code has none.
type Code struct {
	key string
}

// A cache keeps compiled code by module, engine and machine. Several processes may share a
// directory.
type cache struct {
	dir       string
	key       []byte
	group     int // the workers' group, -1 without
	most      int64
	mostEntry int64
	audit     func(string, map[string]string)
	log       *slog.Logger

	mu           sync.Mutex // guards the fields below
	verified     map[string]*entry
	uses         uint64
	preparations map[string]*preparation
}

// An entry is what this process has verified of a key's entry.
type entry struct {
	stamp    stamp    // of the file when it was verified
	size     int64    // of the code
	dir      string   // the directory workers are given
	path     string   // the file
	skeleton *os.File // sealed; run workers get it in place of the module
	used     uint64   // larger than that of every entry used before
}

// mostVerified bounds the entries held open: each has a descriptor and a skeleton in
// memory. A forgotten entry is verified again when needed.
const mostVerified = 64

// A preparation is in progress; others wait for it.
type preparation struct {
	done chan struct{}
	err  error
}

// keyOf returns the name of an entry; module is [Module.Compiled].
func keyOf(module, engine string) string {
	h := sha256.New()
	for _, part := range []string{"sluice compiled code 2", module, engine, machine()} {
		fmt.Fprintf(h, "%d:%s;", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// open returns the files for a run worker: module bytes and the directory. The caller
// closes them. errBadEntry means that there is no usable entry, errForgotten that it must
// be prepared again.
func (c *cache) open(code Code) ([]*os.File, int64, error) {
	e, err := c.verify(code.key)
	if err != nil {
		return nil, 0, err
	}
	skeleton, err := duplicate(e.skeleton)
	if errors.Is(err, os.ErrClosed) {
		return nil, 0, errForgotten
	}
	if err != nil {
		return nil, 0, launchFailure(err)
	}
	dir, err := os.Open(e.dir)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("%w: %w", errBadEntry, err), skeleton.Close())
	}
	return []*os.File{skeleton, dir}, e.size, nil
}

// verify returns the entry if this process has verified it and the file has not changed
// since.
func (c *cache) verify(key string) (*entry, error) {
	c.mu.Lock()
	e := c.verified[key]
	if e != nil {
		c.uses++
		e.used = c.uses
	}
	c.mu.Unlock()
	if e == nil {
		return nil, errForgotten
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

// inspect verifies the entry on disk. It returns fs.ErrNotExist for an absent entry and
// errBadEntry for a bad one.
func (c *cache) inspect(key string) (*entry, error) {
	path, err := c.codePath(key)
	if err != nil {
		return nil, err
	}
	before, err := stampOf(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errBadEntry, err) // the entry exists, so not fs.ErrNotExist
	}
	size, err := c.examine(key)
	if err != nil {
		return nil, err
	}
	return &entry{stamp: before, size: size, path: path, dir: filepath.Join(c.dir, key, codeDir)}, nil
}

// adopt keeps a verified entry with its skeleton.
func (c *cache) adopt(key string, e *entry, skeleton []byte) (err error) {
	if e.skeleton, err = jail.MemFD("module", skeleton); err != nil {
		return err
	}
	c.mu.Lock()
	old := c.verified[key]
	if old == nil && len(c.verified) >= mostVerified {
		old = c.forgetOldest()
	}
	c.uses++
	e.used = c.uses
	c.verified[key] = e
	c.mu.Unlock()
	if old != nil {
		return old.skeleton.Close()
	}
	return nil
}

// forgetOldest removes the least recently used entry from memory. The caller holds mu.
func (c *cache) forgetOldest() *entry {
	key, least := "", uint64(math.MaxUint64)
	for k, e := range c.verified {
		if e.used < least {
			key, least = k, e.used
		}
	}
	e := c.verified[key]
	delete(c.verified, key)
	return e
}

// touch updates the time of last use.
func (c *cache) touch(key string) {
	now := time.Now()
	if err := os.Chtimes(filepath.Join(c.dir, key, entryFile), now, now); err != nil {
		c.log.Debug("compiled code not marked as used", "key", key, "err", err)
	}
}

// drop removes a bad entry and logs it.
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
		_ = e.skeleton.Close() // was only read
	}
	if key == "" {
		return
	}
	if err := os.RemoveAll(filepath.Join(c.dir, key)); err != nil {
		c.log.Warn("compiled code not removed", "key", key, "err", err)
	}
}

// evict removes the least recently used entries, except keep, until the cache is within its
// bound.
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

// close closes all entries.
func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.verified {
		_ = e.skeleton.Close() // only read
	}
	clear(c.verified)
}
