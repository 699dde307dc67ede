package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehost/sluice/host/private"
)

// suffix is that of the directory in which a data directory is restored.
const suffix = ".restoring"

// noteName is the file that marks a directory as being restored.
const noteName = "restoring"

// Unfinished returns an error that wraps ErrUnfinished if a directory holds a restore that was not finished.
func Unfinished(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, noteName)); err != nil {
		return nil
	}
	return fmt.Errorf("%s: %w; give the same sluice restore again, which finishes it, or remove the directory", dir,
		ErrUnfinished)
}

// Begun reports whether a restore to a data directory was begun and not finished.
func Begun(dir string) bool { return Unfinished(dir) != nil || Unfinished(dir+suffix) != nil }

// A note is the open and locked file that marks a directory: the Archive, and when that is finished the description,
// each a line of JSON.
type note struct{ *os.File }

var errStrange = errors.New("it is not of a restore")

// lockTime is how long to wait for the lock, because the process that unpacks outlives its parent by a moment.
var lockTime = 5 * time.Second

// takeNote opens the note of a directory, both of which it makes if they are missing, and takes its lock. It refuses a
// directory that has something else in it.
func takeNote(ctx context.Context, dir string) (*note, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("restore: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := private.Check(fi, dir, fs.ModeDir, errStrange); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) > 0 && Unfinished(dir) == nil {
		err = fmt.Errorf("%w: %s is not empty; move it away", errStrange, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	f, err := root.OpenFile(noteName, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	late, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	err = private.LockFile(late, f)
	if err == nil {
		mine, err1 := f.Stat()
		now, err2 := os.Lstat(filepath.Join(dir, noteName))
		if err = errors.Join(err1, err2); err == nil && !os.SameFile(mine, now) {
			err = ErrRestoring // and has just ended
		}
	}
	if err != nil {
		f.Close()
		if ctx.Err() == nil {
			err = fmt.Errorf("restore to %s: %w; wait until it has ended", dir, ErrRestoring)
		}
		return nil, err
	}
	return &note{f}, nil
}

// begin writes that the directory is being filled from an archive.
func (n *note) begin(about Archive) error {
	err := n.Truncate(0)
	if err == nil {
		err = n.add(about)
	}
	if err == nil {
		err = syncDir(filepath.Dir(n.Name()))
	}
	return err
}

// finished adds the description.
func (n *note) finished(description json.RawMessage) error { return n.add(description) }

func (n *note) add(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = n.Write(append(line, '\n'))
	}
	return errors.Join(err, n.Sync())
}

// read returns the description of what was finished from an archive, if that was.
func (n *note) read(about Archive) (description json.RawMessage, ok bool) {
	text, err := io.ReadAll(io.LimitReader(n, maxKeys))
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	second, _, whole := bytes.Cut(rest, []byte("\n"))
	var was Archive
	if err != nil || !whole || json.Unmarshal(first, &was) != nil || !json.Valid(second) {
		return nil, false
	}
	return second, was.File == about.File && was.Size == about.Size && was.Modified.Equal(about.Modified)
}
