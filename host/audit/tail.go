package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// A tail is the end of a log as an append finds it. The caller closes f.
type tail struct {
	f     *os.File // the newest file, nil for none
	name  string
	names []string
	size  int64
	whole int64   // where its last whole line ends
	lines []place // the last whole lines, at most two, oldest first
}

// A place is a line and where it begins in the newest file, -1 in another.
type place struct {
	at    int64
	entry Entry
	ok    bool // it is an entry
}

// readTail finds the end of the log in a directory that is locked.
func readTail(d *directory) (t tail, err error) {
	if t.names, err = d.files(); err != nil {
		return t, err
	}
	for i := len(t.names) - 1; i >= 0 && len(t.lines) < 2; i-- {
		f, size, err := d.open(t.names[i], os.O_RDWR)
		if err != nil {
			return t, errors.Join(err, t.Close())
		}
		lines, whole, err := lastLines(f, size, 2-len(t.lines))
		if i == len(t.names)-1 {
			t.f, t.name, t.size, t.whole = f, t.names[i], size, whole
		} else {
			err = errors.Join(err, f.Close())
			for j := range lines {
				lines[j].at = -1
			}
		}
		if err != nil {
			return t, errors.Join(err, t.Close())
		}
		t.lines = append(lines, t.lines...)
	}
	return t, nil
}

func (t *tail) Close() error {
	if t.f == nil {
		return nil
	}
	return t.f.Close()
}

// lastLines reads the last whole lines of a file. What is longer than a line
// can be is one line that is no entry.
func lastLines(f *os.File, size int64, most int) (lines []place, whole int64, err error) {
	from := max(0, size-3*maxLine) // two lines, and one that is torn
	b := make([]byte, size-from)
	if _, err := f.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 && from > 0 {
		return []place{{at: -1}}, from, nil // so long, and no line
	}
	if end == 0 {
		return nil, 0, nil
	}
	whole = from + int64(end)
	for len(lines) < most && end > 0 {
		begin := bytes.LastIndexByte(b[:end-1], '\n') + 1
		e, err := parseEntry(b[begin:end])
		lines = append([]place{{from + int64(begin), e, err == nil}}, lines...)
		end = begin
	}
	return lines, whole, nil
}

// A state is where an append continues.
type state struct {
	head  Head
	cut   int64  // where the newest file is to end; its size if nothing is torn
	note  *Event // what is to be told first
	stale bool   // the witness has to catch up first
}

// settle compares the end of a log with its witness. Entries are acknowledged
// once the witness counts them: an unreadable end that it does not count was
// torn by a crash and goes; everything else that does not fit stays, and the
// log goes on after it from what the witness says.
func (t *tail) settle(h *Head) state {
	s := state{cut: t.size}
	if h == nil && t.size == 0 && len(t.lines) == 0 {
		s.stale = true
		return s
	}
	for cut := t.whole; h != nil; {
		last := t.last(cut)
		if s.fits(last, *h) {
			if s.cut = cut; cut < t.size {
				s.note = &Event{Action: TailCut, Target: t.name, Outcome: Done, Actor: "host", Details: []Detail{Count(t.size - cut)}}
			}
			return s
		}
		if last == nil || last.ok || last.at < 0 || cut != t.whole {
			break
		}
		cut = last.at
	}
	if h != nil {
		s.head = *h
	}
	found := uint64(0)
	if last := t.last(t.whole); last != nil && last.ok {
		if found = last.entry.Sequence; found > s.head.Entries {
			s.head = Head{found, last.entry.Hash}
		}
	}
	s.note = &Event{Action: Damaged, Target: t.name, Outcome: Failed, Actor: "host", Details: []Detail{Count(int64(found))}}
	return s
}

// last returns the last line that ends at or before an offset of the newest file.
func (t *tail) last(end int64) *place {
	for i := len(t.lines) - 1; i >= 0; i-- {
		if t.lines[i].at < end {
			return &t.lines[i]
		}
	}
	return nil
}

// fits goes on from a last line that is the one the witness counts, or the one
// after it, whose append was interrupted.
func (s *state) fits(last *place, h Head) bool {
	now := Head{}
	if last != nil {
		if !last.ok {
			return false
		}
		now = Head{last.entry.Sequence, last.entry.Hash}
		s.stale = now.Entries == h.Entries+1 && last.entry.PrevHash == h.Hash
	}
	if now != h && !s.stale {
		return false
	}
	s.head = now
	return true
}
