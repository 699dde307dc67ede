package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	logDir     = "audit"
	witnessDir = "witness"
	rollBytes  = 16 << 20
)

// A Log is the audit log of one data directory. It keeps no files open. It is safe for concurrent
// use, also by several processes.
type Log struct {
	data string
	roll int64
}

// Open returns the log of a data directory, which need not exist: nothing is created before the
// first Append.
func Open(dataDir string) (*Log, error) {
	abs, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("open audit log %s: %w", dataDir, err)
	}
	return &Log{data: abs, roll: rollBytes}, nil
}

// Ready reports whether the log can be written. Callers check before an effect that must not happen
// without an entry.
func (l *Log) Ready() error {
	return l.existing(func(d, w *directory) error {
		if _, err := readHead(w); err != nil {
			return err
		}
		t, err := readTail(d)
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		return t.Close()
	})
}

// Append durably writes events in order after the newest entry, whichever process wrote that.
func (l *Log) Append(events ...Event) error {
	d, err := makeDirectory(l.data, logDir)
	if err != nil {
		return err
	}
	defer d.Close()
	w, err := makeDirectory(l.data, witnessDir)
	if err != nil {
		return err
	}
	defer w.Close()
	return d.locked(func() error {
		for _, e := range events {
			if err := l.add(d, w, e); err != nil {
				return fmt.Errorf("append to audit log: %w", err)
			}
		}
		return nil
	})
}

// add appends one event, after notes about damage to the log.
func (l *Log) add(d, w *directory, event Event) error {
	for {
		told, err := l.step(d, w, event)
		if err != nil || told {
			return err
		}
	}
}

// step appends one line: a note, or the event if there is none (false, true). The witness counts
// each line before the next is written, so at most one line is ahead of it whenever a process is
// killed.
func (l *Log) step(d, w *directory, event Event) (told bool, err error) {
	h, err := readHead(w)
	if err != nil {
		return false, err
	}
	t, err := readTail(d)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	s := t.settle(h)
	if told = s.note == nil; !told {
		event = *s.note
	}
	e, err := entryOf(event, time.Now(), s.head.Entries+1, s.head.Hash)
	if err != nil {
		return false, err
	}
	line, err := e.text()
	if err != nil {
		return false, err
	}
	if s.stale {
		if err := writeHead(w, s.head); err != nil {
			return false, err
		}
	}
	if err := l.write(d, &t, s, line); err != nil {
		return false, err
	}
	return told, writeHead(w, Head{e.Sequence, e.Hash})
}

// write appends a line to the newest file, or to a new one if that is full.
func (l *Log) write(d *directory, t *tail, s state, line []byte) error {
	f, at := t.f, s.cut
	switch {
	case f == nil || at >= l.roll:
		name, err := after(t.names)
		if err != nil {
			return err
		}
		if f, err = d.create(name); err != nil {
			return err
		}
		defer f.Close()
		at = 0
	case s.cut > t.whole: // an incomplete line is kept as evidence
		line = append([]byte{'\n'}, line...)
	}
	if f == t.f || s.cut < t.size {
		if err := cut(t.f, s.cut, t.size); err != nil {
			return err
		}
	}
	_, err := f.WriteAt(line, at)
	if err == nil {
		err = f.Sync()
	}
	if err != nil { // not acknowledged: the next append finds no trace, or removes it
		return errors.Join(err, f.Truncate(at))
	}
	return nil
}

func cut(f *os.File, to, size int64) error {
	if to == size {
		return nil
	}
	return f.Truncate(to)
}

// existing calls do with the directories of an existing log while nobody changes it. w is nil if
// there is no witness directory.
func (l *Log) existing(do func(d, w *directory) error) error {
	d, err := openDirectory(l.data, logDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	w, err := openDirectory(l.data, witnessDir)
	switch {
	case err == nil:
		defer w.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return d.locked(func() error { return do(d, w) })
}
