package badger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"

	"github.com/sluicehost/sluice/store"
)

// A row is what the index knows of a key: where its current content is and
// what it is. It takes 40 bytes in memory and on disk:
//
//	h1 u64  h2 u64  version u64  e1 u64  e2 u64
//
// h1 and h2 are the first 128 bits of SHA-256 of the key, so equal hashes mean
// equal keys. e1 and e2 are the element (see element). The top bit of version
// marks a tombstone.
type row struct {
	h1, h2  uint64
	version uint64
	e1, e2  uint64
}

const (
	rowBytes  = 40
	tombstone = 1 << 63
	vacated   = ^uint64(0) // version of a slot whose row was taken back
)

func (r row) at() uint64    { return r.version &^ tombstone }
func (r row) deleted() bool { return r.version&tombstone != 0 }

func (r row) order(o row) int {
	if c := cmp.Compare(r.h1, o.h1); c != 0 {
		return c
	}
	return cmp.Compare(r.h2, o.h2)
}

func (r row) encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.h1)
	b = binary.LittleEndian.AppendUint64(b, r.h2)
	b = binary.LittleEndian.AppendUint64(b, r.version)
	b = binary.LittleEndian.AppendUint64(b, r.e1)
	return binary.LittleEndian.AppendUint64(b, r.e2)
}

func decodeRow(b []byte) row {
	_ = b[rowBytes-1]
	return row{
		binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]),
		binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:]),
	}
}

func hashKey(key []byte) (h1, h2 uint64) {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])
}

// A hasher computes elements; it is not safe for concurrent use.
type hasher struct{ buf []byte }

func newHasher() *hasher { return new(hasher) }

// element is the first 128 bits of SHA-256 over version, kind, key and data.
// It stands for one version of one key: it tells in the index whether data that
// comes in is what is stored already, and adds up to the stream's sum.
func (e *hasher) element(version uint64, c store.Change) (e1, e2 uint64) {
	b := binary.LittleEndian.AppendUint64(e.buf[:0], version)
	b = append(b, byte(c.Op))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Key)))
	b = append(b, c.Key...)
	b = append(b, c.Data...)
	e.buf = b
	digest := sha256.Sum256(b)
	return binary.BigEndian.Uint64(digest[:]), binary.BigEndian.Uint64(digest[8:])
}

// row is the row of a change that got a version.
func (e *hasher) row(c store.Change, version uint64) row {
	h1, h2 := hashKey(c.Key)
	return e.rowOf(h1, h2, c, version)
}

func (e *hasher) rowOf(h1, h2 uint64, c store.Change, version uint64) row {
	r := row{h1: h1, h2: h2, version: version}
	r.e1, r.e2 = e.element(version, c)
	if c.Op == store.Delete {
		r.version |= tombstone
	}
	return r
}
