package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// A Report is what Verify found (A225).
type Report struct {
	OK      bool
	Entries uint64
	Head    Hash // of the last entry; worth keeping elsewhere
	// Breaks are the first places that do not fit, at most maxBreaks; Broken is
	// how many there are.
	Breaks []Break
	Broken int
	Torn   bool // a line was being written when its process died; no break
}

// A Break is a place where the log is not as it was written. ID is empty if the
// place is no entry, or the end.
type Break struct {
	ID   string
	File string
	Line int
	Why  string
}

const maxBreaks = 20

// Verify reads the whole log and finds entries that were changed, removed,
// moved or added by other hands, and entries that are missing at the end. The
// error is one of reading; a log that is not as it was written is none.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	var r Report
	err := l.existing(func(d, w *directory) error {
		h, err := readHead(w)
		if err != nil {
			return err
		}
		var last Entry
		err = d.scan(func(n line) error {
			r.line(n, &last)
			return ctx.Err()
		})
		if err == nil {
			r.end(h, last)
		}
		return err
	})
	if err == nil && r.Entries == 0 && r.Broken == 0 {
		err = l.gone(&r)
	}
	r.OK = r.Broken == 0
	return r, err
}

// line is one step of the chain. What follows a break is measured by itself.
func (r *Report) line(n line, last *Entry) {
	if n.torn {
		r.Torn = true
		return
	}
	e, err := parseEntry(n.text)
	if err != nil {
		r.broken(Break{File: n.file, Line: n.number, Why: err.Error()})
		return
	}
	switch {
	case e.Sequence != last.Sequence+1:
		r.broken(Break{e.ID, n.file, n.number, fmt.Sprintf("it is entry %d and follows entry %d", e.Sequence, last.Sequence)})
	case e.PrevHash != last.Hash:
		r.broken(Break{e.ID, n.file, n.number, "it does not follow from the entry before it"})
	case e.Action == Damaged:
		r.broken(Break{e.ID, n.file, n.number, "the log was found damaged when this was written"})
	}
	r.Entries++
	r.Head = e.Hash
	*last = e
}

// end compares the last entry with the witness.
func (r *Report) end(h *Head, last Entry) {
	now := Head{last.Sequence, last.Hash}
	switch {
	case h == nil && last.Sequence == 0 && r.Broken == 0:
	case h == nil:
		r.broken(Break{Why: "its witness, witness/audit.head, is missing or unreadable"})
	case now == *h, now.Entries == h.Entries+1 && last.PrevHash == h.Hash:
	case now.Entries < h.Entries:
		r.broken(Break{Why: fmt.Sprintf("the log ends with entry %d, its witness says %d", now.Entries, h.Entries)})
	default:
		r.broken(Break{ID: last.ID, Why: fmt.Sprintf("entry %d is not the one that the witness knows", last.Sequence)})
	}
}

// gone finds a witness without a log.
func (l *Log) gone(r *Report) error {
	w, err := openDirectory(l.data, witnessDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // neither is there
	}
	if err != nil {
		return err
	}
	defer w.Close()
	h, err := readHead(w)
	if h != nil && h.Entries > 0 {
		r.end(h, Entry{})
	}
	return err
}

func (r *Report) broken(b Break) {
	if r.Broken++; len(r.Breaks) < maxBreaks {
		r.Breaks = append(r.Breaks, b)
	}
}
