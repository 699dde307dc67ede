// Package cache keeps SQLite files that can be made again, one per connection, in a directory of limited size. If there
// is no room for another, the least recently used ones are removed.
package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Options are the settings of a Dir.
type Options struct {
	Dir     string       // "" creates a temporary one when needed
	Most    int64        // maximum bytes of all files; 0 for no limit
	Setting string       // name of the setting for Most
	Code    string       // of the refusal if one connection needs more
	Room    func() error // returns an error while the disk is nearly full; may be nil
}

// A Dir is a directory with a file for each connection, with a T as the state of a file in use. It is safe for
// concurrent use.
type Dir[T any] struct {
	o     Options
	close func(*T) error

	mu    sync.Mutex // guards the fields below; held while a file is removed
	temp  bool
	files map[store.ConnectionID]*File[T]
}

// A File is the file of one connection. The lock must be held to change the file or its Value.
type File[T any] struct {
	sync.Mutex
	ID    store.ConnectionID
	Path  string
	Value T

	dir   *Dir[T]
	users int       // guarded by Dir.mu
	used  time.Time // guarded by Dir.mu
}

// New returns a Dir. close, which may be nil, is called with a file's state before the file is removed.
func New[T any](o Options, close func(*T) error) *Dir[T] {
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	if close == nil {
		close = func(*T) error { return nil }
	}
	return &Dir[T]{o: o, close: close, files: map[store.ConnectionID]*File[T]{}}
}

// Close closes all files and removes temporary ones. None may be in use.
func (d *Dir[T]) Close() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.files {
		err = errors.Join(err, d.close(&f.Value))
	}
	if d.temp {
		err = errors.Join(err, os.RemoveAll(d.o.Dir))
	}
	return err
}

// Use returns the file of a connection, which may not exist yet. It is not evicted until Release.
func (d *Dir[T]) Use(id store.ConnectionID) (*File[T], error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.o.Dir == "" {
		dir, err := os.MkdirTemp("", "sluice-")
		if err != nil {
			return nil, fmt.Errorf("make a temporary directory: %w", err)
		}
		d.o.Dir, d.temp = dir, true
	}
	if err := os.MkdirAll(d.o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	f := d.files[id]
	if f == nil {
		f = &File[T]{ID: id, Path: filepath.Join(d.o.Dir, string(id)+suffix), dir: d}
		d.files[id] = f
	}
	f.users++
	f.used = time.Now()
	// Record the use for after a restart. The file may not exist yet.
	if err := os.Chtimes(f.Path, f.used, f.used); err != nil && !errors.Is(err, os.ErrNotExist) {
		f.users--
		return nil, fmt.Errorf("touch %s: %w", f.Path, err)
	}
	return f, nil
}

// Release ends a use.
func (f *File[T]) Release() {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	f.users--
}

// Remove removes the file, so that it can be made again. The caller holds its lock.
func (f *File[T]) Remove() error {
	return errors.Join(f.dir.close(&f.Value), remove(f.Path))
}

// Forget removes the file of a connection. It waits for whoever is changing it.
func (d *Dir[T]) Forget(id store.ConnectionID) error {
	d.mu.Lock()
	none := d.o.Dir == ""
	d.mu.Unlock()
	if none {
		return nil
	}
	f, err := d.Use(id)
	if err != nil {
		return err
	}
	defer f.Release()
	f.Lock()
	defer f.Unlock()
	return f.Remove()
}

// Idle closes unused files, except for the most recently used ones, of which it leaves up to most.
func (d *Dir[T]) Idle(most int) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var idle []*File[T]
	for _, f := range d.files {
		if f.users == 0 {
			idle = append(idle, f)
		}
	}
	slices.SortFunc(idle, func(a, b *File[T]) int { return b.used.Compare(a.used) })
	for i, f := range idle {
		if i >= most {
			err = errors.Join(err, d.close(&f.Value))
			delete(d.files, f.ID)
		}
	}
	return err
}

// Grow must be called before each step that grows the file. It calls Fit, and returns an error while the disk is nearly
// full.
func (f *File[T]) Grow() error {
	if err := f.dir.o.Room(); err != nil {
		return err
	}
	return f.Fit()
}

// Fit removes files of other connections until all fit. It returns a *host.Refusal if this one does not fit by itself
// or together with those in use.
func (f *File[T]) Fit() error {
	d := f.dir
	if d.o.Most == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := d.weigh()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, w := range all {
		total += w.bytes
	}
	for _, w := range all {
		if total <= d.o.Most || w.id == f.ID && w.bytes > d.o.Most {
			break
		}
		if other := d.files[w.id]; other != nil {
			if other.users > 0 {
				continue
			}
			if err := d.close(&other.Value); err != nil {
				return err
			}
			delete(d.files, w.id)
		}
		if err := remove(filepath.Join(d.o.Dir, string(w.id)+suffix)); err != nil {
			return fmt.Errorf("remove the copy of %s: %w", w.id, err)
		}
		total -= w.bytes
	}
	if total > d.o.Most {
		return host.Refuse(d.o.Code,
			"a copy of connection %s takes more than the %s that there are for copies; raise %s in the configuration, or export the connection instead",
			f.ID, size(d.o.Most), d.o.Setting)
	}
	return nil
}

// size returns a number of bytes in words.
func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// A weight is the size of a connection's file including SQLite's additional files.
type weight struct {
	id    store.ConnectionID
	bytes int64
	used  time.Time
}

// weigh lists the existing files in the order of eviction.
func (d *Dir[T]) weigh() ([]weight, error) {
	entries, err := os.ReadDir(d.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	of := map[store.ConnectionID]*weight{}
	for _, e := range entries {
		id, rest, ok := strings.Cut(e.Name(), suffix)
		info, err := e.Info()
		if !ok || err != nil { // it was removed meanwhile
			continue
		}
		w := of[store.ConnectionID(id)]
		if w == nil {
			w = &weight{id: store.ConnectionID(id)}
			of[w.id] = w
		}
		w.bytes += info.Size()
		if rest == "" {
			w.used = info.ModTime()
		}
	}
	out := make([]weight, 0, len(of))
	for _, w := range of {
		if f := d.files[w.id]; f != nil {
			w.used = f.used
		}
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b weight) int { return a.used.Compare(b.used) })
	return out, nil
}

const suffix = ".db"

func remove(path string) (err error) {
	for _, beside := range []string{"", "-wal", "-shm"} {
		err = errors.Join(err, os.RemoveAll(path+beside)) // somebody may have put a directory there
	}
	return err
}
