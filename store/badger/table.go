package badger

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
