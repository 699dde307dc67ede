package bulk

// A table holds the rows of the newest versions of a stream in memory: open
// addressing by the top bits of h1, without wrapping, so that reading the
// slots from first to last is reading almost in order of the hash.
type Table struct {
	slots []Row // version 0 is an empty slot
	shift uint  // slot of a row is h1 >> shift
	Used  int   // slots that are not empty
}

// emptied returns an empty table that will hold as much without growing.
func (t *Table) Emptied() *Table { return sizedTable(64 - t.shift) }

// slack is how many slots follow the last home slot.
func slack(home int) int { return home/8 + 16 }

const tableStart = 6 // log2 of the first number of home slots

func NewTable() *Table { return sizedTable(tableStart) }

func sizedTable(bits uint) *Table {
	home := 1 << bits
	return &Table{slots: make([]Row, home+slack(home)), shift: 64 - bits}
}

// find returns the slot of a key's row, or the slot for it: ok says whether it
// is there. The slot is nil when the table has to grow first.
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

// get returns the row of a key.
func (t *Table) Get(h1, h2 uint64) (Row, bool) {
	slot, ok := t.find(h1, h2)
	if !ok {
		return Row{}, false
	}
	return *slot, true
}

// put sets the row of a key and returns the one it had.
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

// unput takes back a put.
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

// rows returns the rows in order of the hash.
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
