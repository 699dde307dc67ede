package bulk

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"

	"github.com/sluicehost/sluice/store"
)

// A Table holds the rows of a stream's newest versions in memory. It is a hash table with
// open addressing by the top bits of h1 and no wrapping, so that the slots are almost in
// the order of the hash.
type Table struct {
	slots []Row // version 0 is an empty slot
	shift uint  // the home slot of a row is h1 >> shift
	Used  int   // slots that are not empty
}

// Emptied returns an empty table of the same capacity.
func (t *Table) Emptied() *Table { return sizedTable(64 - t.shift) }

// slack returns the number of extra slots after the last home slot.
func slack(home int) int { return home/8 + 16 }

const tableStart = 6 // log2 of the first number of home slots

func NewTable() *Table { return sizedTable(tableStart) }

func sizedTable(bits uint) *Table {
	home := 1 << bits
	return &Table{slots: make([]Row, home+slack(home)), shift: 64 - bits}
}

// find returns the slot of a key's row, or else the slot to put it in; ok says which. The
// slot is nil if the table must grow first.
func (t *Table) find(h1, h2 uint64) (slot *Row, ok bool) {
	for i := h1 >> t.shift; i < uint64(len(t.slots)); i++ {
		r := &t.slots[i]
		if r.Version == 0 {
			return r, false
		}
		if r.H1 == h1 && r.H2 == h2 {
			return r, r.Version != vacated
		}
	}
	return nil, false
}

// Get returns the row of a key.
func (t *Table) Get(h1, h2 uint64) (Row, bool) {
	slot, ok := t.find(h1, h2)
	if !ok {
		return Row{}, false
	}
	return *slot, true
}

// Put sets the row of a key and returns the previous one.
func (t *Table) Put(r Row) (old Row, had bool) {
	for {
		slot, had := t.find(r.H1, r.H2)
		if slot == nil || slot.Version == 0 && 4*(t.Used+1) > 3*(1<<(64-t.shift)) {
			t.grow()
			continue
		}
		if slot.Version == 0 {
			t.Used++
		}
		old, *slot = *slot, r
		return old, had
	}
}

// Unput undoes a Put.
func (t *Table) Unput(r, old Row, had bool) {
	slot, _ := t.find(r.H1, r.H2)
	if slot == nil {
		return
	}
	if had {
		*slot = old
	} else {
		slot.Version = vacated
	}
}

func (t *Table) grow() {
	bigger := sizedTable(64 - t.shift + 1)
	for _, r := range t.slots {
		if r.Version != 0 && r.Version != vacated {
			bigger.Put(r)
		}
	}
	*t = *bigger
}

// Rows returns the rows in the order of the hash.
func (t *Table) Rows() []Row {
	rows := make([]Row, 0, t.Used)
	for _, r := range t.slots {
		if r.Version == 0 || r.Version == vacated {
			continue
		}
		rows = append(rows, r)
		for i := len(rows) - 1; i > 0 && rows[i].order(rows[i-1]) < 0; i-- {
			rows[i], rows[i-1] = rows[i-1], rows[i]
		}
	}
	return rows
}

func (t *Table) Memory() int64 { return int64(len(t.slots)) * RowBytes }

// A Row is the index entry of a key's current content. It takes 40 bytes in memory and on
// disk:
//
//	h1 u64  h2 u64  version u64  e1 u64  e2 u64
//
// h1 and h2 are the first 128 bits of SHA-256 of the key, so equal hashes are taken for
// equal keys. e1 and e2 are the element (see Hasher.Element). The top bit of version marks
// a tombstone.
type Row struct {
	H1, H2  uint64
	Version uint64
	E1, E2  uint64
}

const (
	RowBytes  = 40
	Tombstone = 1 << 63
	vacated   = ^uint64(0) // version of a slot whose row was removed by Unput
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

// A Hasher computes elements; it is not safe for concurrent use.
type Hasher struct{ buf []byte }

func NewHasher() *Hasher { return new(Hasher) }

// Element returns the first 128 bits of SHA-256 over version, kind, key and data. It
// identifies one version of one key: the index detects with it that incoming data is
// already stored, and the sum of a stream's elements is its checksum.
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

// Row returns the row of a change with its version.
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
