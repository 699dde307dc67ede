package badger

import (
	"slices"
	"sort"
)

// A sortedCursor reads one run, or what is in memory, in either direction.
type sortedCursor struct {
	s    *sorted
	run  []fence
	page int // in rows
	rows []orderRow
	at   int // -1 and len(rows) are beside the page
	down bool
}

// A sortedMerge reads all of them as one.
type sortedMerge struct{ cursors []*sortedCursor }

// seek opens a reading behind the key after, or below it; "" is no bound.
func (s *sorted) seek(after string, down bool) (*sortedMerge, error) {
	m := new(sortedMerge)
	for i := -1; i < len(s.runs); i++ {
		c := &sortedCursor{s: s, down: down, rows: s.recent}
		if i >= 0 {
			c.run = s.runs[i]
			if err := c.find(after); err != nil {
				return nil, err
			}
		}
		c.place(after)
		if err := c.settle(); err != nil {
			return nil, err
		}
		if c.at >= 0 && c.at < len(c.rows) {
			m.cursors = append(m.cursors, c)
		}
	}
	return m, nil
}

// find reads the page of a run where a reading begins.
func (c *sortedCursor) find(after string) error {
	switch {
	case after == "" && c.down:
		c.page = len(c.run) - 1
	case after == "":
		c.page = 0
	case c.down: // the last page that begins below
		c.page = max(0, sort.Search(len(c.run), func(i int) bool { return c.run[i].first >= after })-1)
	default: // the last page that begins at it or below
		c.page = max(0, sort.Search(len(c.run), func(i int) bool { return c.run[i].first > after })-1)
	}
	var err error
	c.rows, err = c.s.read(c.run[c.page])
	return err
}

// place sets the cursor within its page.
func (c *sortedCursor) place(after string) {
	switch {
	case c.down && after == "":
		c.at = len(c.rows) - 1
	case c.down:
		c.at = sort.Search(len(c.rows), func(i int) bool { return c.rows[i].key >= after }) - 1
	case after == "":
		c.at = 0
	default:
		c.at = sort.Search(len(c.rows), func(i int) bool { return c.rows[i].key > after })
	}
}

// settle goes to the next page when the cursor left the one it is in.
func (c *sortedCursor) settle() error {
	step, start := 1, func() int { return 0 }
	if c.down {
		step, start = -1, func() int { return len(c.rows) - 1 }
	}
	for c.at < 0 || c.at >= len(c.rows) {
		if next := c.page + step; next < 0 || next >= len(c.run) {
			return nil
		}
		c.page += step
		var err error
		if c.rows, err = c.s.read(c.run[c.page]); err != nil {
			return err
		}
		c.at = start()
	}
	return nil
}

// next returns the row that comes next; false at the end.
func (m *sortedMerge) next() (orderRow, bool, error) {
	best := -1
	for i, c := range m.cursors {
		if best < 0 {
			best = i
			continue
		}
		if order := compareRows(c.rows[c.at], m.cursors[best].rows[m.cursors[best].at]); order < 0 != c.down && order != 0 {
			best = i
		}
	}
	if best < 0 {
		return orderRow{}, false, nil
	}
	c := m.cursors[best]
	row := c.rows[c.at]
	if c.at++; c.down {
		c.at -= 2
	}
	if err := c.settle(); err != nil {
		return row, false, err
	}
	if c.at < 0 || c.at >= len(c.rows) {
		m.cursors = slices.Delete(m.cursors, best, best+1)
	}
	return row, true, nil
}

// some returns up to most rows that are wanted, fewer when their data is large.
func (m *sortedMerge) some(most int, wanted func(orderRow) (bool, error)) ([]orderRow, error) {
	var rows []orderRow
	for bytes := 0; len(rows) < most && bytes < orderedBytes; {
		row, ok, err := m.next()
		if err != nil || !ok {
			return rows, err
		}
		want, err := wanted(row)
		if err != nil {
			return nil, err
		}
		if want {
			rows = append(rows, row)
			bytes += int(row.size)
		}
	}
	return rows, nil
}
