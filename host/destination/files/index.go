package files

import (
	"encoding/binary"
	"hash/maphash"
	"io"
	"math/bits"
	"os"
	"slices"

	"github.com/sluicehost/sluice/host/destination"
)

// seed makes hashes of keys unpredictable for connectors.
var seed = maphash.MakeSeed()

// A keyset holds hashes of the keys of one part, by bucket: the top bits of a hash select its bucket, which has the low
// 32 bits. That is about five bytes per key, and false positives at a rate of 1 in 500 million.
//
//	shift u32  ends [buckets+1]u32  rest [keys]u32        little-endian
//
// shift shortens a hash to its bucket b, which is rest[ends[b]:ends[b+1]].
type keyset []byte

func (k keyset) at(i int) uint32         { return binary.LittleEndian.Uint32(k[4*i:]) }
func (k keyset) set(i int, value uint32) { binary.LittleEndian.PutUint32(k[4*i:], value) }

// fill returns the set of the given hashes, in the memory of k if that suffices.
func (k keyset) fill(hashes []uint64) keyset {
	width := max(1, bits.Len(uint(len(hashes)/8)))
	shift, rest := 64-width, 1+1<<width+1
	k = slices.Grow(k[:0], 4*(rest+1+len(hashes)))[:4*(rest+len(hashes))]
	clear(k[:4*rest])
	k.set(0, uint32(shift)) // #nosec G115 -- below 64
	bucket := func(h uint64) int { return 1 + int(h>>shift) }
	for _, h := range hashes { // counts, two places further
		if b := bucket(h) + 2; b < rest {
			k.set(b, k.at(b)+1)
		}
	}
	for i := 3; i < rest; i++ {
		k.set(i, k.at(i)+k.at(i-1))
	}
	for _, h := range hashes { // beginnings, which become ends
		b := bucket(h) + 1
		n := k.at(b)
		k.set(rest+int(n), uint32(h)) // #nosec G115 -- the low half
		k.set(b, n+1)
	}
	return k
}

// has reports whether one of the sorted hashes may be in the part.
func (k keyset) has(hashes []uint64) bool {
	shift := k.at(0)
	rest := 2 + 1<<(64-shift)
	for _, h := range hashes {
		b := 1 + int(h>>shift) // #nosec G115 -- few bits are left
		for i := k.at(b); i < k.at(b+1); i++ {
			if k.at(rest+int(i)) == uint32(h) { // #nosec G115 -- the low half
				return true
			}
		}
	}
	return false
}

// A place is where a keyset is in the file of an index.
type place struct {
	offset int64
	bytes  int
}

// An index holds the keysets of all parts of the tables in a file, so that the memory that a destination takes does not
// grow with its rows.
type index struct {
	root   *os.Root
	file   *os.File // nil until it is needed
	end    int64
	places map[destination.StreamID]map[uint64]place // by number of the part
	buffer keyset
}

func newIndex(root *os.Root) *index {
	return &index{root: root, places: map[destination.StreamID]map[uint64]place{}}
}

// open creates the file, which loses its name at once. If the system does not allow that, close removes it.
func (x *index) open() (*os.File, error) {
	_ = x.root.Remove(keysTmp) // left by a crash
	f, err := x.root.OpenFile(keysTmp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		_ = x.root.Remove(keysTmp)
	}
	return f, err
}

// add appends the set of the given hashes, which is also left in buffer.
func (x *index) add(hashes []uint64) (p place, err error) {
	if x.file == nil {
		if x.file, err = x.open(); err != nil {
			return p, err
		}
	}
	x.buffer = x.buffer.fill(hashes)
	p = place{x.end, len(x.buffer)}
	if _, err := (disk{io.NewOffsetWriter(x.file, p.offset)}).Write(x.buffer); err != nil {
		return p, err
	}
	x.end += int64(p.bytes)
	return p, nil
}

// has reports whether one of the sorted hashes may be in a part.
func (x *index) has(p place, hashes []uint64) (bool, error) {
	x.buffer = slices.Grow(x.buffer[:0], p.bytes)[:p.bytes]
	if _, err := x.file.ReadAt(x.buffer, p.offset); err != nil {
		return false, err
	}
	return x.buffer.has(hashes), nil
}

// of returns the places of a table.
func (x *index) of(id destination.StreamID) map[uint64]place {
	if x.places[id] == nil {
		x.places[id] = map[uint64]place{}
	}
	return x.places[id]
}

// replace limits the sets of a table to those of parts, including fresh ones.
func (x *index) replace(id destination.StreamID, parts []part, fresh map[uint64]place) {
	was, now := x.places[id], map[uint64]place{}
	for _, p := range parts {
		if set, ok := fresh[p.Number]; ok {
			now[p.Number] = set
		} else if set, ok := was[p.Number]; ok {
			now[p.Number] = set
		}
	}
	x.places[id] = now
	x.compact()
}

// minGarbage is the number of bytes of dropped sets from which on the file is written anew. Tests replace it.
var minGarbage int64 = 8 << 20

// compact rewrites the file without the sets that were dropped, once they are half of it. If that fails, the sets are
// made again when they are needed.
func (x *index) compact() {
	kept := int64(0)
	for _, of := range x.places {
		for _, p := range of {
			kept += int64(p.bytes)
		}
	}
	if garbage := x.end - kept; garbage < minGarbage || garbage < kept {
		return
	}
	old := x.file
	defer old.Close()
	if x.file, x.end = nil, 0; kept == 0 {
		return
	}
	to, err := x.open()
	for _, of := range x.places {
		for n, p := range of {
			if err == nil {
				n := int64(p.bytes)
				_, err = io.CopyN(io.NewOffsetWriter(to, x.end), io.NewSectionReader(old, p.offset, n), n)
			}
			of[n] = place{x.end, p.bytes}
			x.end += int64(p.bytes)
		}
	}
	if x.file = to; err != nil {
		x.forget()
	}
}

// forget drops all sets.
func (x *index) forget() {
	clear(x.places)
	_ = x.close() // nothing of it is needed
}

func (x *index) close() (err error) {
	if x.file != nil {
		err = x.file.Close()
		_ = x.root.Remove(keysTmp)
	}
	x.file, x.end = nil, 0
	return err
}
