package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An Entry describes a backup that was made of a data directory.
type Entry struct {
	File      string    `json:"file"`
	Created   time.Time `json:"created"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	Encrypted bool      `json:"encrypted"`
	Verified  bool      `json:"verified"` // the drill has restored it
	Records   uint64    `json:"records"`
}

// Gone reports whether the file is no longer where it was written, or has a different size.
func (e Entry) Gone() bool {
	fi, err := os.Stat(e.File)
	return err != nil || !fi.Mode().IsRegular() || fi.Size() != e.Size
}

// The list of backups is in the default directory of backups, with one line for each of the last maxEntries.
const (
	listName   = "list.jsonl"
	maxEntries = 1000
	maxList    = 4 << 20
)

// Dir returns the default directory of a data directory's backups.
func Dir(data string) string { return filepath.Join(data, "backups") }

// List returns the backups made of a data directory, oldest first.
func List(data string) ([]Entry, error) {
	path := filepath.Join(Dir(data), listName)
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!fi.Mode().IsRegular() || fi.Size() > maxList) {
		err = fmt.Errorf("%s is no list of backups; move it away", path)
	}
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var out []Entry
	for line := range bytes.Lines(text) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("list backups: %s: %w; move it away", path, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// Note adds a backup to the list. The caller holds the lock of the data directory.
func Note(data string, e Entry) error {
	all, err := List(data)
	if err != nil {
		return err
	}
	all = append(all, e)
	var text []byte
	for _, e := range all[max(0, len(all)-maxEntries):] {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	if err := replace(filepath.Join(Dir(data), listName), text); err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	return nil
}
