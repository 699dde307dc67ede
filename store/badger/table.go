package badger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
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

// A table holds the rows of the newest versions of a stream in memory: open
// addressing by the top bits of h1, without wrapping, so that reading the
// slots from first to last is reading almost in order of the hash.
type table struct {
	slots []row // version 0 is an empty slot
	shift uint  // slot of a row is h1 >> shift
	used  int   // slots that are not empty
}

// emptied returns an empty table that will hold as much without growing.
func (t *table) emptied() *table { return sizedTable(64 - t.shift) }

// slack is how many slots follow the last home slot.
func slack(home int) int { return home/8 + 16 }

const tableStart = 6 // log2 of the first number of home slots

func newTable() *table { return sizedTable(tableStart) }

func sizedTable(bits uint) *table {
	home := 1 << bits
	return &table{slots: make([]row, home+slack(home)), shift: 64 - bits}
}

// find returns the slot of a key's row, or the slot for it: ok says whether it
// is there. The slot is nil when the table has to grow first.
func (t *table) find(h1, h2 uint64) (slot *row, ok bool) {
	for i := h1 >> t.shift; i < uint64(len(t.slots)); i++ {
		r := &t.slots[i]
		if r.version == 0 {
			return r, false
		}
		if r.h1 == h1 && r.h2 == h2 {
			return r, r.version != vacated
		}
	}
	return nil, false
}

// get returns the row of a key.
func (t *table) get(h1, h2 uint64) (row, bool) {
	slot, ok := t.find(h1, h2)
	if !ok {
		return row{}, false
	}
	return *slot, true
}

// put sets the row of a key and returns the one it had.
func (t *table) put(r row) (old row, had bool) {
	for {
		slot, had := t.find(r.h1, r.h2)
		if slot == nil || slot.version == 0 && 4*(t.used+1) > 3*(1<<(64-t.shift)) {
			t.grow()
			continue
		}
		if slot.version == 0 {
			t.used++
		}
		old, *slot = *slot, r
		return old, had
	}
}

// unput takes back a put.
func (t *table) unput(r, old row, had bool) {
	slot, _ := t.find(r.h1, r.h2)
	if slot == nil {
		return
	}
	if had {
		*slot = old
	} else {
		slot.version = vacated
	}
}

func (t *table) grow() {
	bigger := sizedTable(64 - t.shift + 1)
	for _, r := range t.slots {
		if r.version != 0 && r.version != vacated {
			bigger.put(r)
		}
	}
	*t = *bigger
}

// rows returns the rows in order of the hash.
func (t *table) rows() []row {
	rows := make([]row, 0, t.used)
	for _, r := range t.slots {
		if r.version == 0 || r.version == vacated {
			continue
		}
		rows = append(rows, r)
		for i := len(rows) - 1; i > 0 && rows[i].order(rows[i-1]) < 0; i-- {
			rows[i], rows[i-1] = rows[i-1], rows[i]
		}
	}
	return rows
}

func (t *table) memory() int64 { return int64(len(t.slots)) * rowBytes }
