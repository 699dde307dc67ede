package bulk

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
type Row struct {
	H1, H2  uint64
	Version uint64
	E1, E2  uint64
}

const (
	RowBytes  = 40
	Tombstone = 1 << 63
	vacated   = ^uint64(0) // version of a slot whose row was taken back
)

func (r Row) At() uint64    { return r.Version &^ Tombstone }
func (r Row) Deleted() bool { return r.Version&Tombstone != 0 }

func (r Row) order(o Row) int {
	if c := cmp.Compare(r.H1, o.H1); c != 0 {
		return c
	}
	return cmp.Compare(r.H2, o.H2)
}

func (r Row) encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.H1)
	b = binary.LittleEndian.AppendUint64(b, r.H2)
	b = binary.LittleEndian.AppendUint64(b, r.Version)
	b = binary.LittleEndian.AppendUint64(b, r.E1)
	return binary.LittleEndian.AppendUint64(b, r.E2)
}

func decodeRow(b []byte) Row {
	_ = b[RowBytes-1]
	return Row{
		binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]),
		binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:]),
	}
}

func HashKey(key []byte) (h1, h2 uint64) {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])
}

// A hasher computes elements; it is not safe for concurrent use.
type Hasher struct{ buf []byte }

func NewHasher() *Hasher { return new(Hasher) }

// element is the first 128 bits of SHA-256 over version, kind, key and data.
// It stands for one version of one key: it tells in the index whether data that
// comes in is what is stored already, and adds up to the stream's sum.
func (e *Hasher) Element(version uint64, c store.Change) (e1, e2 uint64) {
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
func (e *Hasher) Row(c store.Change, version uint64) Row {
	h1, h2 := HashKey(c.Key)
	return e.RowOf(h1, h2, c, version)
}

func (e *Hasher) RowOf(h1, h2 uint64, c store.Change, version uint64) Row {
	r := Row{H1: h1, H2: h2, Version: version}
	r.E1, r.E2 = e.Element(version, c)
	if c.Op == store.Delete {
		r.Version |= Tombstone
	}
	return r
}
