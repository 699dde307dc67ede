package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// A scratch is the disk space of one query for sorting: unnamed files with a limit on their total size. Sorting in
// memory would be half again as slow and could use up all memory.
type scratch struct {
	name   string
	most   int64
	during func() context.Context // of the statement
	used   atomic.Int64
	full   atomic.Bool
}

var scratches atomic.Uint64 // for names

func newScratch(most int64, during func() context.Context) *scratch {
	s := &scratch{name: fmt.Sprintf("sluice-%d", scratches.Add(1)), most: most, during: during}
	vfs.Register(s.name, s)
	return s
}

// end releases the name. The connection must be closed.
func (s *scratch) end() { vfs.Unregister(s.name) }

// over reports whether the limit was reached.
func (s *scratch) over() bool { return s.full.Load() }

// Open implements vfs.VFS. It only opens temporary files.
func (s *scratch) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name != "" || flags&(vfs.OPEN_TEMP_DB|vfs.OPEN_TRANSIENT_DB|vfs.OPEN_TEMP_JOURNAL|vfs.OPEN_SUBJOURNAL) == 0 {
		return nil, flags, sqlite3.CANTOPEN
	}
	f, err := os.CreateTemp("", "sluice-sort-*")
	if err != nil {
		return nil, flags, fmt.Errorf("%w: %w", sqlite3.CANTOPEN, err)
	}
	_ = os.Remove(f.Name()) // if an open file cannot be removed, Close does it
	return &scratchFile{File: f, of: s}, flags, nil
}

// Delete implements vfs.VFS.
func (s *scratch) Delete(string, bool) error { return sqlite3.IOERR_DELETE }

// Access implements vfs.VFS.
func (s *scratch) Access(string, vfs.AccessFlag) (bool, error) { return false, nil }

// FullPathname implements vfs.VFS.
func (s *scratch) FullPathname(name string) (string, error) { return name, nil }

// A scratchFile counts its size towards the limit. It ends the statement when its time is over, for which SQLite looks
// only every thousand steps: with long values these take seconds.
type scratchFile struct {
	*os.File
	of   *scratch
	size int64
}

// ReadAt implements vfs.File.
func (f *scratchFile) ReadAt(p []byte, at int64) (int, error) {
	if f.of.during().Err() != nil {
		return 0, sqlite3.INTERRUPT
	}
	return f.File.ReadAt(p, at)
}

// WriteAt implements vfs.File.
func (f *scratchFile) WriteAt(p []byte, at int64) (int, error) {
	if f.of.during().Err() != nil {
		return 0, sqlite3.INTERRUPT
	}
	if grows := at + int64(len(p)) - f.size; grows > 0 {
		if f.of.used.Add(grows) > f.of.most {
			f.of.used.Add(-grows)
			f.of.full.Store(true)
			return 0, sqlite3.FULL
		}
		f.size += grows
	}
	return f.File.WriteAt(p, at)
}

// Truncate implements vfs.File.
func (f *scratchFile) Truncate(size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	f.of.used.Add(size - f.size)
	f.size = size
	return nil
}

// Close implements vfs.File.
func (f *scratchFile) Close() error {
	f.of.used.Add(-f.size)
	err := f.File.Close()
	if e := os.Remove(f.Name()); e != nil && !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// Size implements vfs.File.
func (f *scratchFile) Size() (int64, error) { return f.size, nil }

// Sync implements vfs.File. It does nothing, because the file is not needed after a crash.
func (f *scratchFile) Sync(vfs.SyncFlag) error { return nil }

// Lock implements vfs.File. It does nothing, because the file has only one user.
func (f *scratchFile) Lock(vfs.LockLevel) error { return nil }

// Unlock implements vfs.File.
func (f *scratchFile) Unlock(vfs.LockLevel) error { return nil }

// CheckReservedLock implements vfs.File.
func (f *scratchFile) CheckReservedLock() (bool, error) { return false, nil }

// SectorSize implements vfs.File.
func (f *scratchFile) SectorSize() int { return 0 }

// DeviceCharacteristics implements vfs.File.
func (f *scratchFile) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
