package bulk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/store"
)

const bulkSuffix = ".bulk"

// A Dir is a directory of bulk files. Reads are safe for concurrent use; writes come from
// one goroutine.
type Dir struct {
	dir string

	mu    sync.RWMutex // guards files
	files map[uint32]file
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
}

// OpenDir returns the files in dir without opening them. With dir "" they are kept in
// memory.
func OpenDir(dir string) *Dir { return &Dir{dir: dir, files: make(map[uint32]file)} }

// open opens a file; with make it creates a missing one.
func (b *Dir) open(n uint32, make bool) (file, error) {
	if b.dir == "" {
		return new(memoryFile), nil
	}
	path := filepath.Join(b.dir, bulkName(n))
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if make && errors.Is(err, os.ErrNotExist) {
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = SyncDir(b.dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open bulk file: %w", err)
	}
	return f, nil
}

func bulkName(file uint32) string { return fmt.Sprintf("%08d%s", file, bulkSuffix) }

// file returns an open file; with make it creates a missing one.
func (b *Dir) file(n uint32, make bool) (file, error) {
	b.mu.RLock()
	f := b.files[n]
	b.mu.RUnlock()
	if f != nil {
		return f, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.files[n]; f != nil {
		return f, nil
	}
	f, err := b.open(n, make)
	if err == nil {
		b.files[n] = f
	}
	return f, err
}

// Read returns the payload of an extent after checking it.
func (b *Dir) Read(key []byte, p Place) ([]byte, error) {
	f, err := b.file(p.File, false)
	if err != nil {
		return nil, store.Corrupt("%v", err)
	}
	payload := make([]byte, p.length)
	n, err := f.ReadAt(payload, int64(p.Offset)+int64(ExtentHeader+len(key)))
	if err != nil && !(errors.Is(err, io.EOF) && n == len(payload)) {
		return nil, store.Corrupt("bulk file %d at %d: %v", p.File, p.Offset, err)
	}
	if ieee, casta := sums(key, payload); ieee != p.ieee || casta != p.casta {
		return nil, store.Corrupt("bulk file %d at %d: payload does not match its checksums", p.File, p.Offset)
	}
	return payload, nil
}

// ErrSync means that written data may or may not be durable.
var ErrSync = errors.New("sync failed")

// Write writes and syncs chunks. It returns ErrSync if the result is uncertain.
func (b *Dir) Write(chunks []Chunk) error {
	var touched []file
	for _, c := range chunks {
		f, err := b.file(c.File, true)
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(c.Bytes, int64(c.Offset)); err != nil {
			return fmt.Errorf("write bulk: %w", err)
		}
		if !slices.Contains(touched, f) {
			touched = append(touched, f)
		}
	}
	for _, f := range touched {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("bulk file: %w: %w", ErrSync, err)
		}
	}
	return nil
}

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// List returns the numbers of the files in the directory, in order.
func (b *Dir) List() ([]uint32, error) {
	all, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, fmt.Errorf("list bulk files: %w", err)
	}
	var files []uint32
	for _, e := range all {
		name, ok := strings.CutSuffix(e.Name(), bulkSuffix)
		if n, err := strconv.ParseUint(name, 10, 32); ok && err == nil {
			files = append(files, uint32(n))
		}
	}
	slices.Sort(files)
	return files, nil
}

// Holds reports whether a file has at least bytes bytes.
func (b *Dir) Holds(n uint32, bytes uint64) (bool, error) {
	info, err := os.Stat(filepath.Join(b.dir, bulkName(n)))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("inspect bulk file: %w", err)
	}
	return uint64(info.Size()) >= bytes, nil
}

// Remove deletes an unreferenced file.
func (b *Dir) Remove(n uint32) error {
	b.mu.Lock()
	f := b.files[n]
	delete(b.files, n)
	b.mu.Unlock()
	if f != nil {
		f.Close()
	}
	if b.dir == "" {
		return nil
	}
	return os.Remove(filepath.Join(b.dir, bulkName(n)))
}

func (b *Dir) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.Close())
	}
	clear(b.files)
	return errors.Join(errs...)
}

// Extents calls fn for the complete extents of a file, from its beginning up to end.
func (b *Dir) Extents(n uint32, end uint64, fn func(key []byte, offset uint64, length uint32) error) error {
	f, err := b.file(n, false)
	if err != nil {
		return err
	}
	var head [ExtentHeader]byte
	for off := uint64(0); off < end; {
		if _, err := f.ReadAt(head[:], int64(off)); err != nil {
			return store.Corrupt("bulk file %d at %d: %v", n, off, err)
		}
		k, length := binary.LittleEndian.Uint16(head[4:]), binary.LittleEndian.Uint32(head[6:])
		if binary.LittleEndian.Uint32(head[:]) != extentMagic {
			return store.Corrupt("bulk file %d at %d: no extent", n, off)
		}
		key := make([]byte, k)
		if _, err := f.ReadAt(key, int64(off)+ExtentHeader); err != nil {
			return store.Corrupt("bulk file %d at %d: %v", n, off, err)
		}
		if err := fn(key, off, length); err != nil {
			return err
		}
		off += uint64(ExtentHeader) + uint64(k) + uint64(length)
	}
	return nil
}

// A memoryFile grows as it is written to.
type memoryFile struct {
	mu    sync.RWMutex // guards bytes
	bytes []byte
}

func (f *memoryFile) ReadAt(b []byte, at int64) (n int, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if at < int64(len(f.bytes)) {
		n = copy(b, f.bytes[at:])
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

func (f *memoryFile) WriteAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if missing := at - int64(len(f.bytes)); missing > 0 {
		f.bytes = append(f.bytes, make([]byte, missing)...)
	}
	f.bytes = append(f.bytes[:at], b...)
	return len(b), nil
}

func (*memoryFile) Sync() error  { return nil }
func (*memoryFile) Close() error { return nil }
