package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Head returns the end of the log as its witness has it, zero without a witness. It reads one small
// file.
func (l *Log) Head() (Head, error) {
	w, err := openDirectory(l.data, witnessDir)
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, nil
	}
	if err != nil {
		return Head{}, err
	}
	defer w.Close()
	h, err := readHead(w)
	if h == nil || err != nil {
		return Head{}, err
	}
	return *h, nil
}

// ErrOtherLog means that a log is not the one that had a head: another one is in its place, such as
// after its directory was deleted.
var ErrOtherLog = errors.New("another audit log is in the place of the one that was read before")

// After returns up to limit entries that follow a head of this log, oldest first. It returns only
// entries that the witness counts, since a later one may still be taken back. Invalid lines are
// skipped; Verify finds them.
func (l *Log) After(ctx context.Context, h Head, limit int) ([]Entry, error) {
	end, err := l.Head()
	switch {
	case err != nil, end == h, end.Entries == 0:
		return nil, err
	case end.Entries <= h.Entries:
		return nil, ErrOtherLog
	}
	d, err := openDirectory(l.data, logDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	a := onward{from: h, most: end.Entries, limit: limit}
	err = d.scanFrom(h.Entries, func(n line) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return a.line(n)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return a.page, nil
}

// onward is the state of After.
type onward struct {
	from  Head
	most  uint64 // sequence of the last entry wanted
	limit int
	page  []Entry
	known bool // the entry of from was found
}

func (a *onward) line(n line) error {
	last := a.from.Entries
	if len(a.page) > 0 {
		last = a.page[len(a.page)-1].Sequence
	}
	if at, ok := sequenceOf(n.text); n.torn || !ok || at < a.from.Entries {
		return nil
	}
	e, err := parseEntry(n.text)
	switch {
	case err != nil:
		return nil
	case e.Sequence == a.from.Entries:
		if e.Hash != a.from.Hash {
			return ErrOtherLog
		}
		a.known = true
	case e.Sequence == a.from.Entries+1 && a.from.Entries > 0 && !a.known && e.PrevHash != a.from.Hash:
		return ErrOtherLog
	case e.Sequence > a.most:
		return errEnough
	case e.Sequence > last:
		a.page = append(a.page, e)
	}
	if len(a.page) >= a.limit {
		return errEnough
	}
	return nil
}

// scanFrom is scan without the lines of entries that are known to be below a sequence.
func (d *directory) scanFrom(sequence uint64, do func(line) error) error {
	names, err := d.files()
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	first := 0
	for i, name := range names {
		below, err := d.beginsBelow(name, sequence)
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		if below {
			first = i
		}
	}
	return d.scanFiles(names[first:], do)
}

// beginsBelow reports whether the first entry of a file is not above a sequence.
func (d *directory) beginsBelow(name string, sequence uint64) (bool, error) {
	f, size, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, min(size, 64))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first, ok := sequenceOf(head)
	return ok && first <= sequence, nil
}

// Decode parses an entry that was stored elsewhere as JSON, in whatever encoding. The hash is
// checked.
func Decode(text []byte) (Entry, error) {
	var e Entry
	if len(text) > 2*maxLine || json.Unmarshal(text, &e) != nil {
		return Entry{}, errNotWritten
	}
	line, err := e.text()
	if err != nil {
		return Entry{}, err
	}
	return parseEntry(line)
}
