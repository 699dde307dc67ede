package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// Bounds of one Newest: entries read and compared, and bytes read at a time.
const (
	newestEntries = 10_000
	newestBlock   = 64 << 10
)

// Newest returns entries newest first, from below the sequence before, or from the newest for 0.
// next is where to continue, 0 at the beginning of the log. It reads a bounded number of entries,
// so a page may be short, or even empty, although there are more. Invalid lines are skipped; Verify
// finds them.
func (l *Log) Newest(ctx context.Context, f Filter, before uint64, limit int) (page []Entry, next uint64, err error) {
	d, err := openDirectory(l.data, logDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer d.Close()
	names, err := d.files()
	if err != nil {
		return nil, 0, fmt.Errorf("read audit log: %w", err)
	}
	s := search{filter: f, before: before, limit: limit}
	for i := len(names) - 1; i >= 0 && !s.full; i-- {
		if err := s.file(ctx, d, names[i]); err != nil {
			return nil, 0, fmt.Errorf("read audit log: %w", err)
		}
	}
	if s.full && s.last > 1 {
		next = s.last
	}
	return s.page, next, nil
}

// A search reads a log backwards.
type search struct {
	filter Filter
	before uint64 // 0: from the newest
	limit  int

	page   []Entry
	looked int
	last   uint64 // sequence of the last entry read
	full   bool   // there may be more
}

// file searches one file. A file whose first entry is not below before is skipped.
func (s *search) file(ctx context.Context, d *directory, name string) error {
	f, size, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, min(size, 64))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if first, ok := sequenceOf(head); ok && s.before > 0 && first >= s.before {
		return nil
	}
	return backwards(f, size, func(line []byte) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		s.line(line)
		return !s.full, nil
	})
}

func (s *search) line(line []byte) {
	n, ok := sequenceOf(line)
	if !ok || s.before > 0 && n >= s.before {
		return
	}
	if s.looked++; s.looked > newestEntries || len(s.page) >= s.limit {
		s.full = true
		return
	}
	e, err := parseEntry(line)
	if err != nil {
		return
	}
	if s.last = e.Sequence; s.filter.Match(&e) {
		s.page = append(s.page, e)
	}
}

// sequenceOf parses the sequence at the start of an entry.
func sequenceOf(line []byte) (uint64, bool) {
	digits, ok := bytes.CutPrefix(line, []byte(`{"sequence":`))
	end := bytes.IndexByte(digits[:min(len(digits), 21)], ',')
	if !ok || end < 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(digits[:end]), 10, 64)
	return n, err == nil
}

// backwards passes the complete lines of a file to more, last first, with their line ends, until
// more returns false. A line is valid until the next call. Overlong lines are skipped.
func backwards(f io.ReaderAt, size int64, more func(line []byte) (bool, error)) error {
	var tail []byte // the bytes from at to the lines already passed
	block := make([]byte, newestBlock)
	for at := size; at > 0 || len(tail) > 0; {
		i := bytes.LastIndexByte(tail[:max(len(tail)-1, 0)], '\n')
		if i < 0 && at > 0 {
			n := min(at, newestBlock)
			if _, err := f.ReadAt(block[:n], at-n); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			at -= n
			if len(tail) > maxLine {
				tail = tail[:0] // too long for a line, and so is the rest of it
			}
			tail = append(bytes.Clone(block[:n]), tail...)
			continue
		}
		line := tail[i+1:]
		if bytes.HasSuffix(line, []byte{'\n'}) && len(line) <= maxLine {
			if on, err := more(line); err != nil || !on {
				return err
			}
		}
		tail = tail[:i+1]
	}
	return nil
}
