package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// A Report is the result of Verify.
type Report struct {
	OK      bool
	Entries uint64
	Head    Hash // of the last entry; worth storing elsewhere
	// Breaks are the first places that do not match, at most maxBreaks; Broken counts all.
	Breaks []Break
	Broken int
	Torn   bool // a line was unfinished when its process died, which is no break
}

// A Break is a place where the log was altered. ID is empty if it is no valid entry, or the end.
type Break struct {
	ID   string
	File string
	Line int
	Why  string
}

const maxBreaks = 20

// Verify reads the whole log and finds entries that were changed, removed, moved or added, and
// entries missing at the end. The error is that of reading; an altered log is no error.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	var r Report
	err := l.existing(func(d, w *directory) error {
		h, err := readHead(w)
		if err != nil {
			return err
		}
		c := chain{r: &r}
		err = d.scan(func(n line) error {
			c.line(n)
			return ctx.Err()
		})
		if err == nil {
			c.end(h)
		}
		return err
	})
	if err == nil && r.Entries == 0 && r.Broken == 0 {
		err = l.gone(&r)
	}
	r.OK = r.Broken == 0
	return r, err
}

// A chain is the state of reading a log.
type chain struct {
	r       *Report
	last    Entry
	pending *Break // an unreadable line: incomplete if it is the last and the witness does not count it
	newest  bool   // it is in the newest file
}

// line checks one line. After a break the chain continues from the line that broke it.
func (c *chain) line(n line) {
	if n.torn {
		c.r.Torn = true
		return
	}
	c.flush()
	e, err := parseEntry(n.text)
	if err != nil {
		c.pending, c.newest = &Break{File: n.file, Line: n.number, Why: err.Error()}, n.newest
		return
	}
	switch {
	case e.Sequence != c.last.Sequence+1:
		c.r.broken(Break{e.ID, n.file, n.number,
			fmt.Sprintf("it is entry %d and follows entry %d", e.Sequence, c.last.Sequence)})
	case e.PrevHash != c.last.Hash:
		c.r.broken(Break{e.ID, n.file, n.number, "it does not follow from the entry before it"})
	case e.Action == Damaged:
		c.r.broken(Break{e.ID, n.file, n.number, "the log was found damaged when this was written"})
	}
	c.r.Entries++
	c.r.Head = e.Hash
	c.last = e
}

func (c *chain) flush() {
	if c.pending != nil {
		c.r.broken(*c.pending)
		c.pending = nil
	}
}

// end compares the last entry with the witness.
func (c *chain) end(h *Head) {
	now := Head{c.last.Sequence, c.last.Hash}
	fits := h != nil && (now == *h || now.Entries == h.Entries+1 && c.last.PrevHash == h.Hash)
	if fits && c.newest && c.pending != nil {
		c.r.Torn, c.pending = true, nil
	}
	c.flush()
	switch {
	case fits, h == nil && now.Entries == 0 && c.r.Broken == 0:
	case h == nil:
		c.r.broken(Break{Why: "its witness, witness/audit.head, is missing or unreadable"})
	case now.Entries < h.Entries:
		c.r.broken(Break{Why: fmt.Sprintf("the log ends with entry %d, its witness says %d", now.Entries, h.Entries)})
	default:
		c.r.broken(Break{ID: c.last.ID, Why: fmt.Sprintf("entry %d is not the one that the witness knows", c.last.Sequence)})
	}
}

// gone reports a witness whose log is missing.
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
		(&chain{r: r}).end(h)
	}
	return err
}

func (r *Report) broken(b Break) {
	if r.Broken++; len(r.Breaks) < maxBreaks {
		r.Breaks = append(r.Breaks, b)
	}
}
