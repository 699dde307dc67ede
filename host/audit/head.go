package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A Head is the end of a log: its number of entries and the hash of the last. It is stored apart
// from the log, in the witness directory.
type Head struct {
	Entries uint64 `json:"entries"`
	Hash    Hash   `json:"hash"`
}

const (
	headName = "audit.head"
	maxHead  = 256
)

// readHead returns nil if there is no readable head.
func readHead(w *directory) (*Head, error) {
	if w == nil {
		return nil, nil
	}
	f, size, err := w.open(headName, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var h Head
	text, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil {
		return nil, fmt.Errorf("read witness of the audit log: %w", err)
	}
	if size >= maxHead || json.Unmarshal(text, &h) != nil {
		return nil, nil
	}
	return &h, nil
}

// writeHead durably replaces the head, by which the next append distinguishes an interruption from
// a loss.
func writeHead(w *directory, h Head) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	const temporary = headName + ".tmp"
	if err := w.root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write witness of the audit log: %w", err)
	}
	f, err := w.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write witness of the audit log: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = w.root.Rename(temporary, headName)
	}
	if err == nil {
		err = w.sync()
	}
	if err != nil {
		return fmt.Errorf("write witness of the audit log: %w", err)
	}
	return nil
}
