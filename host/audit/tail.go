package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// A tail is the end of a log as an append finds it. The caller closes f.
type tail struct {
	f     *os.File // the newest file; may be nil
	name  string
	names []string
	size  int64
	whole int64   // end of its last complete line
	lines []place // the last complete lines, at most two, oldest first
}

// A place is a line and its offset in the newest file, or -1 if it is in another file.
type place struct {
	at    int64
	entry Entry
	ok    bool // it is a valid entry
}

// readTail reads the end of the log in a locked directory.
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

// lastLines reads the last complete lines of a file. Anything longer than a line counts as one
// invalid line.
func lastLines(f *os.File, size int64, most int) (lines []place, whole int64, err error) {
	from := max(0, size-3*maxLine) // two lines and an incomplete one
	b := make([]byte, size-from)
	if _, err := f.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 && from > 0 {
		return []place{{at: -1}}, from, nil // too long for a line
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
	cut   int64  // where the newest file is truncated; its size if nothing is incomplete
	note  *Event // to be recorded first
	stale bool   // the witness has to be updated first
}

// settle compares the end of a log with its witness. Entries are acknowledged once the witness
// counts them. So an unreadable end that it does not count was left by a crash and is removed;
// anything else that does not match stays, and the log continues after it from the witness.
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
				s.note = &Event{Action: TailCut, Target: t.name, Outcome: Done, Actor: "host",
					Details: []Detail{Count(t.size - cut)}}
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
	s.note = &Event{Action: Damaged, Target: t.name, Outcome: Failed, Actor: "host",
		Details: []Detail{Count(int64(found))}}
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

// fits reports whether the last line is the one that the witness counts, or the one after it, whose
// append was interrupted.
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
