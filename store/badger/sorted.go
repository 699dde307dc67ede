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
	"strings"
)

// A sorted keeps rows in the order of their keys: the newest in memory, the
// others in sorted runs of pages in a file. A run is never merged with another: a
// page of a listing needs one page of each, and there is one for some ten thousand
// rows.
//
//	run   magic u32  through u64  rows u64  fences_len u32  pages_len u32
//	      CRC-32 u32 of that and the fences  fences  pages    little-endian
//	fence key_len uvarint  key  size uvarint  CRC-32 u32 of the page
//	page  rows
//	row   shared uvarint, with the key before  rest_len uvarint  rest
//	      version·2+deleted uvarint  size uvarint
//
// The file is what can be worked out again, so it is not synced, and whatever
// does not sum up is dropped: a run when the file is opened, with all behind it,
// or the whole when a page is read.
type sorted struct {
	dir    string // "" in memory
	name   string // of the file in dir; "" for one that has none and ends with it
	limit  int    // bytes of rows in memory
	recent []orderRow
	bytes  int // of recent
	runs   [][]fence
	f      *os.File
	mem    []byte // instead of f
	end    int64
}

// An orderRow is one version of one key in an order.
type orderRow struct {
	key     string
	version uint64
	size    uint32 // of its data
	deleted bool
}

func (r orderRow) memory() int { return len(r.key) + 48 }

// A fence is what is in memory of a page on disk.
type fence struct {
	first string // key of its first row
	at    int64
	size  int
	sum   uint32
}

const (
	sortedBytes = 4 << 20
	fencedBytes = 8 << 10 // of a page
	runMagic    = 0x53_4c_4f_31
	runHeader   = 4 + 8 + 8 + 4 + 4 + 4
)

// errOrderBroken: the file of an order is not as it was written.
var errOrderBroken = errors.New("order does not match its checksum")

func newSorted(s *Store, name string) sorted {
	limit := sortedBytes
	if s.opts.Small {
		limit /= 4
	}
	if s.opts.orderBytes > 0 {
		limit = s.opts.orderBytes
	}
	return sorted{dir: s.orderDir(), name: name, limit: limit}
}

func compareRows(a, b orderRow) int { return strings.Compare(a.key, b.key) }

// add takes rows in, with which the order has so many rows, all up to a version.
// They are the caller's again afterwards.
func (s *sorted) add(fresh []orderRow, through, rows uint64) error {
	if len(fresh) == 0 {
		return nil
	}
	fresh = slices.Clone(fresh)
	slices.SortStableFunc(fresh, compareRows)
	for _, r := range fresh {
		s.bytes += r.memory()
	}
	if len(s.recent) > 0 {
		fresh = mergeSorted(s.recent, fresh)
	}
	s.recent = fresh
	if s.bytes < s.limit {
		return nil
	}
	return s.spill(through, rows)
}

func mergeSorted(a, b []orderRow) []orderRow {
	out := make([]orderRow, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareRows(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// spill makes a run of what is in memory.
func (s *sorted) spill(through, rows uint64) error {
	run, pages := pagesOf(s.recent)
	head := binary.LittleEndian.AppendUint32(nil, runMagic)
	head = binary.LittleEndian.AppendUint64(head, through)
	head = binary.LittleEndian.AppendUint64(head, rows)
	fences := fencesOf(run)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(fences)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(pages)))
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, fences)
	head = append(binary.LittleEndian.AppendUint32(head, sum), fences...)
	if err := s.write(append(head, pages...)); err != nil {
		return err
	}
	for i := range run {
		run[i].at += s.end + int64(len(head))
	}
	s.end += int64(len(head) + len(pages))
	s.runs = append(s.runs, run)
	s.recent, s.bytes = nil, 0
	return nil
}

// pagesOf cuts rows into pages, with fences as if they were alone in a file.
func pagesOf(rows []orderRow) (run []fence, pages []byte) {
	start, last := 0, ""
	for i, r := range rows {
		if len(pages) == start {
			run, last = append(run, fence{first: r.key, at: int64(start)}), ""
		}
		shared := 0
		for shared < min(len(last), len(r.key)) && last[shared] == r.key[shared] {
			shared++
		}
		pages = binary.AppendUvarint(pages, uint64(shared))
		pages = binary.AppendUvarint(pages, uint64(len(r.key)-shared))
		pages = append(pages, r.key[shared:]...)
		v := r.version << 1
		if r.deleted {
			v |= 1
		}
		pages = binary.AppendUvarint(pages, v)
		pages = binary.AppendUvarint(pages, uint64(r.size))
		last = r.key
		if len(pages)-start >= fencedBytes || i == len(rows)-1 {
			f := &run[len(run)-1]
			f.size, f.sum = len(pages)-start, crc32.Checksum(pages[start:], castagnoli)
			start = len(pages)
		}
	}
	return run, pages
}

func fencesOf(run []fence) (b []byte) {
	for _, f := range run {
		b = append(binary.AppendUvarint(b, uint64(len(f.first))), f.first...)
		b = binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, uint64(f.size)), f.sum)
	}
	return b
}

// write puts a run behind the others.
func (s *sorted) write(run []byte) error {
	if s.dir == "" {
		s.mem = append(s.mem[:s.end], run...)
		return nil
	}
	if s.f == nil {
		if err := s.create(); err != nil {
			return fmt.Errorf("make order: %w", err)
		}
	}
	if _, err := s.f.WriteAt(run, s.end); err != nil {
		return fmt.Errorf("write order: %w", err)
	}
	return nil
}

func (s *sorted) create() (err error) {
	if s.name != "" {
		s.f, err = os.OpenFile(filepath.Join(s.dir, s.name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		return err
	}
	f, err := os.CreateTemp(s.dir, "order-*.tmp")
	if err != nil {
		return err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return err
	}
	s.f = f
	return nil
}

// read returns the rows of a page.
func (s *sorted) read(f fence) ([]orderRow, error) {
	page := make([]byte, f.size)
	if s.f == nil {
		copy(page, s.mem[f.at:])
	} else if _, err := s.f.ReadAt(page, f.at); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read order: %w", err)
	}
	if crc32.Checksum(page, castagnoli) != f.sum {
		return nil, errOrderBroken
	}
	var rows []orderRow
	c := cut{b: page}
	for last := ""; len(c.b) > 0; {
		shared := c.number()
		rest := c.bytes(c.number())
		v, size := c.number(), c.number()
		if c.short || shared > uint64(len(last)) {
			return nil, errOrderBroken
		}
		last = last[:shared] + string(rest)
		rows = append(rows, orderRow{key: last, version: v >> 1, deleted: v&1 == 1, size: uint32(size)})
	}
	return rows, nil
}

// load opens the file of an order and says how far it had come. What does not sum
// up ends it.
func (s *sorted) load() (through, rows uint64, err error) {
	if s.dir == "" || s.name == "" {
		return 0, 0, nil
	}
	s.f, err = os.OpenFile(filepath.Join(s.dir, s.name), os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("open order: %w", err)
	}
	info, err := s.f.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("open order: %w", err)
	}
	for {
		t, n, ok := s.loadRun(info.Size())
		if !ok {
			return through, rows, s.f.Truncate(s.end)
		}
		through, rows = t, n
	}
}

func (s *sorted) loadRun(size int64) (through, rows uint64, ok bool) {
	head := make([]byte, runHeader)
	if _, err := s.f.ReadAt(head, s.end); err != nil || binary.LittleEndian.Uint32(head) != runMagic {
		return 0, 0, false
	}
	fenced, paged := binary.LittleEndian.Uint32(head[20:]), binary.LittleEndian.Uint32(head[24:])
	at := s.end + runHeader + int64(fenced)
	if at+int64(paged) > size {
		return 0, 0, false
	}
	fences := make([]byte, fenced)
	if _, err := s.f.ReadAt(fences, s.end+runHeader); err != nil {
		return 0, 0, false
	}
	sum := crc32.Update(crc32.Checksum(head[:28], castagnoli), castagnoli, fences)
	if sum != binary.LittleEndian.Uint32(head[28:]) {
		return 0, 0, false
	}
	var run []fence
	c := cut{b: fences}
	for len(c.b) > 0 {
		f := fence{first: string(c.bytes(c.number())), at: at, size: int(c.number()), sum: c.four()}
		if at += int64(f.size); c.short || f.size > int(paged) {
			return 0, 0, false
		}
		run = append(run, f)
	}
	s.end += runHeader + int64(fenced) + int64(paged)
	s.runs = append(s.runs, run)
	return binary.LittleEndian.Uint64(head[4:]), binary.LittleEndian.Uint64(head[12:]), len(run) > 0
}

// A cut takes a page apart.
type cut struct {
	b     []byte
	short bool
}

func (c *cut) number() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.short, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cut) bytes(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.short, c.b = true, nil
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cut) four() uint32 {
	if b := c.bytes(4); len(b) == 4 {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// reset forgets all rows.
func (s *sorted) reset() error {
	s.recent, s.bytes, s.runs, s.mem, s.end = nil, 0, nil, nil, 0
	if s.f == nil {
		return nil
	}
	return s.f.Truncate(0)
}

// remove takes the name from the file.
func (s *sorted) remove() {
	if s.dir != "" && s.name != "" {
		_ = os.Remove(filepath.Join(s.dir, s.name)) // the sweep at the next open tries again
	}
}

func (s *sorted) close() {
	if s.f != nil {
		s.f.Close()
	}
	*s = sorted{}
}
