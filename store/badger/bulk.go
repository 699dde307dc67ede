package badger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Bulk is what is written once and never changed: the segments with the
// records, the pages of index runs and their filters. It lies in files of its
// own beside the engine, in extents
//
//	magic u32  key_len u16  length u32  key  payload          little-endian
//
// and the engine keeps, under the key, where it is and both of its checksums.
// An extent is synced before the transaction that refers to it, so it is there
// whenever the transaction is; an extent that no transaction refers to is
// garbage and is written over.
//
// The reason is write amplification: the engine copies every byte four to five
// times on its way down its levels, through mapped files, and that was three
// quarters of the cost of a record. It is not the engine's own value log,
// whose failed sync is only logged (S117).
const (
	extentMagic  = 0x53_4c_45_31
	extentHeader = 4 + 2 + 4
	bulkRoll     = 128 << 20 // size at which a file is followed by the next
	bulkSuffix   = ".bulk"
)

// A place is where an extent's payload is and what it sums to.
type place struct {
	file   uint32
	offset uint64 // of the extent; the payload follows header and key
	length uint32 // of the payload
	ieee   uint32 // over key and payload
	casta  uint32
}

const placeBytes = 4 + 8 + 4 + 4 + 4

func (p place) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, p.file)
	b = binary.LittleEndian.AppendUint64(b, p.offset)
	b = binary.LittleEndian.AppendUint32(b, p.length)
	b = binary.LittleEndian.AppendUint32(b, p.ieee)
	return binary.LittleEndian.AppendUint32(b, p.casta)
}

func decodePlace(b []byte) (place, bool) {
	if len(b) != placeBytes {
		return place{}, false
	}
	u := binary.LittleEndian.Uint32
	return place{u(b), binary.LittleEndian.Uint64(b[4:]), u(b[12:]), u(b[16:]), u(b[20:])}, true
}

// size is what the extent takes in its file.
func (p place) size(key []byte) int64 { return int64(extentHeader+len(key)) + int64(p.length) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sums(key, payload []byte) (ieee, casta uint32) {
	return crc32.Update(crc32.ChecksumIEEE(key), crc32.IEEETable, payload),
		crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, payload)
}

func appendExtent(b, key, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, extentMagic)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, key...)
	return append(b, payload...)
}

// A bulk is the directory of bulk files. Reads may come from anywhere; writes
// only from the writer.
type bulk struct {
	dir string // "" in memory: then there is no bulk

	mu    sync.RWMutex // guards files
	files map[uint32]*os.File
}

func bulkName(file uint32) string { return fmt.Sprintf("%08d%s", file, bulkSuffix) }

// file returns a file that is there; with make, it may be new.
func (b *bulk) file(n uint32, make bool) (*os.File, error) {
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
	path := filepath.Join(b.dir, bulkName(n))
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if make && errors.Is(err, os.ErrNotExist) {
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = syncDir(b.dir)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open bulk file: %w", err)
	}
	b.files[n] = f
	return f, nil
}

// read returns the payload of an extent after checking it.
func (b *bulk) read(key []byte, p place) ([]byte, error) {
	f, err := b.file(p.file, false)
	if err != nil {
		return nil, damagef("%v", err)
	}
	payload := make([]byte, p.length)
	n, err := f.ReadAt(payload, int64(p.offset)+int64(extentHeader+len(key)))
	if err != nil && !(errors.Is(err, io.EOF) && n == len(payload)) {
		return nil, damagef("bulk file %d at %d: %v", p.file, p.offset, err)
	}
	if ieee, casta := sums(key, payload); ieee != p.ieee || casta != p.casta {
		return nil, damagef("bulk file %d at %d: %v", p.file, p.offset, errBadValue)
	}
	return payload, nil
}

// A run of bytes for one file.
type chunkOf struct {
	file   uint32
	offset uint64
	bytes  []byte
}

// errSync: what was written may or may not be on the device.
var errSync = errors.New("sync failed")

// write brings chunks to the device; errSync when that is uncertain.
func (b *bulk) write(chunks []chunkOf) error {
	var touched []*os.File
	for _, c := range chunks {
		f, err := b.file(c.file, true)
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(c.bytes, int64(c.offset)); err != nil {
			return fmt.Errorf("write bulk: %w", err)
		}
		if !slices.Contains(touched, f) {
			touched = append(touched, f)
		}
	}
	for _, f := range touched {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("bulk file: %w: %w", errSync, err)
		}
	}
	return nil
}

// list returns the numbers of the files in the directory, in order.
func (b *bulk) list() ([]uint32, error) {
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

// remove deletes a file that nothing refers to any more.
func (b *bulk) remove(n uint32) error {
	b.mu.Lock()
	f := b.files[n]
	delete(b.files, n)
	b.mu.Unlock()
	if f != nil {
		f.Close()
	}
	return os.Remove(filepath.Join(b.dir, bulkName(n)))
}

func (b *bulk) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.Close())
	}
	clear(b.files)
	return errors.Join(errs...)
}

// extents calls fn for the extents at the beginning of a file, as far as they
// are whole, up to end.
func (b *bulk) extents(n uint32, end uint64, fn func(key []byte, offset uint64, length uint32) error) error {
	f, err := b.file(n, false)
	if err != nil {
		return err
	}
	var head [extentHeader]byte
	for off := uint64(0); off < end; {
		if _, err := f.ReadAt(head[:], int64(off)); err != nil {
			return damagef("bulk file %d at %d: %v", n, off, err)
		}
		k, length := binary.LittleEndian.Uint16(head[4:]), binary.LittleEndian.Uint32(head[6:])
		if binary.LittleEndian.Uint32(head[:]) != extentMagic {
			return damagef("bulk file %d at %d: no extent", n, off)
		}
		key := make([]byte, k)
		if _, err := f.ReadAt(key, int64(off)+extentHeader); err != nil {
			return damagef("bulk file %d at %d: %v", n, off, err)
		}
		if err := fn(key, off, length); err != nil {
			return err
		}
		off += uint64(extentHeader) + uint64(k) + uint64(length)
	}
	return nil
}
