package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"
)

// A Filter selects entries; zero fields select all. Action, Actor and Target are prefixes: secret
// matches every secret.…, a connection all of its secrets, owner every user.
type Filter struct {
	Action, Actor, Target string
	Since, Until          time.Time // Until is exclusive
}

// Match reports whether an entry is selected.
func (f *Filter) Match(e *Entry) bool {
	return under(string(e.Action), f.Action, ".") && under(e.Actor, f.Actor, ":") && under(e.Target, f.Target, "/") &&
		!e.At.Before(f.Since) && (f.Until.IsZero() || e.At.Before(f.Until))
}

func under(s, want, separator string) bool {
	return want == "" || s == want || strings.HasPrefix(s, want+separator)
}

// A BrokenError is a line of the log that was altered.
type BrokenError struct {
	File string
	Line int // from 1
	Why  string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("line %d of %s: %s", e.Line, e.File, e.Why)
}

// Entries yields the entries from a sequence on, oldest first. Invalid lines yield a *BrokenError
// and do not end it; other errors do. It does not check the chain; Verify does.
func (l *Log) Entries(ctx context.Context, f Filter, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		d, err := openDirectory(l.data, logDir)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer d.Close()
		err = d.scan(func(n line) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			e, err := parseEntry(n.text)
			switch {
			case n.torn: // it may be being written
			case err != nil && !yield(Entry{}, &BrokenError{n.file, n.number, err.Error()}):
				return errEnough
			case err == nil && e.Sequence >= from && f.Match(&e) && !yield(e, nil):
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Entry{}, err)
		}
	}
}

var errEnough = errors.New("enough")

// A line is a line of a file. text is valid until the next line, and truncated if it is too long.
// torn means that it is the last and has no line end.
type line struct {
	file   string
	number int
	text   []byte
	torn   bool
	newest bool // in the newest file
}

// scan passes every line of the directory's files to do.
func (d *directory) scan(do func(line) error) error {
	names, err := d.files()
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	return d.scanFiles(names, do)
}

// scanFiles is scan of the last files.
func (d *directory) scanFiles(names []string, do func(line) error) error {
	b := bufio.NewReaderSize(nil, maxLine)
	for i, name := range names {
		if err := d.scanFile(name, b, i == len(names)-1, do); err != nil {
			return err
		}
	}
	return nil
}

func (d *directory) scanFile(name string, b *bufio.Reader, last bool, do func(line) error) error {
	f, _, err := d.open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted from the request log; in the audit log the chain shows it
	}
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	b.Reset(f)
	for number := 1; ; number++ {
		text, err := b.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			text = nil
			_, err = b.ReadSlice('\n')
		}
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return fmt.Errorf("read audit log: %w", err)
		}
		if ended && text != nil && len(text) == 0 {
			return nil
		}
		if err := do(line{name, number, text, ended && last, last}); err != nil || ended {
			return err
		}
	}
}
