package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

var (
	// ErrNotEmpty reports that the directory is not empty; a restore never merges.
	ErrNotEmpty = errors.New("the directory is not empty")
	// ErrEncrypted reports that the backup is encrypted and no identity was given.
	ErrEncrypted = errors.New("the backup is encrypted")
	// ErrUnfinished reports that a directory holds a restore that was not finished.
	ErrUnfinished = errors.New("it holds a restore that was not finished")
	// ErrRestoring reports that another process is restoring to the directory.
	ErrRestoring = errors.New("another restore to it is going on")
)

// An Unpacker unpacks an archive, like UnpackApart. Until it has ended it keeps the file held open.
type Unpacker func(ctx context.Context, archive io.Reader, dir string, held *os.File) (Summary, string, error)

// A Restoration makes a data directory, which must be missing or empty, of a backup.
type Restoration struct {
	File       string
	Dir        string
	Identities Identities // none for a backup in plain text
	Unpack     Unpacker
	// Finish completes what was unpacked and verified, and describes it in JSON.
	Finish func(dir string, s Summary) (json.RawMessage, error)
	// HandOver is called last, and again by the next restore if this one is interrupted. It may be nil.
	HandOver func(dir string) error
	// Fault is called between steps, with a point of RestoreFaults. It may be nil.
	Fault func(point string) error
}

// RestoreFaults are fault points for tests, in order.
var RestoreFaults = []string{"restore.begun", "restore.unpacked", "restore.finished",
	"restore.handed-over", "restore.renamed"}

func (r Restoration) fault(step int) error {
	if r.Fault == nil {
		return nil
	}
	return r.Fault(RestoreFaults[step])
}

// Restore unpacks, verifies and finishes everything in a directory next to the data directory, which it then renames,
// and returns what Finish did. A note in it says until the end that it is not to be used (Unfinished). If a restore was
// interrupted, the next one of the same backup goes on with what was finished; anything else begins anew.
func (r Restoration) Restore(ctx context.Context) (description json.RawMessage, err error) {
	if real, err := filepath.EvalSymlinks(r.Dir); err == nil {
		r.Dir = real
	}
	r.Dir = filepath.Clean(r.Dir)
	temp := r.Dir + suffix
	if Unfinished(r.Dir) != nil { // it was renamed
		temp = r.Dir
	} else if err := empty(r.Dir); err != nil {
		return nil, err
	}
	f, about, err := openArchive(r.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	archive, err := plain(f, r.File, r.Identities)
	if err != nil {
		return nil, err
	}
	note, err := takeNote(ctx, temp)
	if err != nil {
		return nil, err
	}
	defer note.Close()
	description, known := note.read(about)
	if !known {
		if description, err = r.unpack(ctx, archive, temp, note, about); err != nil {
			return nil, errors.Join(err, discard(temp))
		}
	}
	if r.HandOver != nil {
		if err := r.HandOver(temp); err != nil {
			return nil, err
		}
	}
	if err := r.fault(3); err != nil {
		return nil, err
	}
	err = r.place(temp)
	if err != nil && r.HandOver == nil && temp != r.Dir {
		err = errors.Join(err, discard(temp))
	}
	return description, err
}

// unpack fills the directory anew.
func (r Restoration) unpack(ctx context.Context, archive io.Reader, temp string, note *note,
	about Archive) (json.RawMessage, error) {
	err := clearDir(temp)
	if err == nil {
		err = note.begin(about)
	}
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	if err := r.fault(0); err != nil {
		return nil, err
	}
	s, _, err := r.Unpack(ctx, archive, temp, note.File)
	if err == nil {
		err = r.fault(1)
	}
	if err != nil {
		return nil, err
	}
	description, err := r.Finish(temp, s)
	if err == nil {
		err = syncDir(temp)
	}
	if err == nil {
		err = note.finished(description)
	}
	if err == nil {
		err = r.fault(2)
	}
	return description, err
}

func empty(dir string) error {
	names, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("restore to %s: %w", dir, err)
	case len(names) > 0:
		return fmt.Errorf("restore to %s: %w, and a backup is never merged; name another with --store badger:DIR", dir,
			ErrNotEmpty)
	}
	return nil
}

// An Archive is the file of a backup as a note tells it from others.
type Archive struct {
	File     string    `json:"file"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

func openArchive(file string) (f *os.File, a Archive, err error) {
	fi, err := os.Stat(file) // opening another kind of file could block forever
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", file)
	}
	if err == nil {
		a = Archive{Size: fi.Size(), Modified: fi.ModTime().UTC()}
		a.File, err = filepath.Abs(file)
	}
	if err == nil {
		f, err = os.Open(file)
	}
	if err != nil {
		return nil, a, fmt.Errorf("open backup: %w", err)
	}
	return f, a, nil
}

// plain returns the archive in a file, which may be encrypted.
func plain(f io.Reader, file string, ids Identities) (io.Reader, error) {
	r := bufio.NewReaderSize(f, 256<<10)
	intro, err := r.Peek(len(ageIntro))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("open backup: %w", err)
	}
	switch {
	case string(intro) != ageIntro:
		return r, nil
	case len(ids) == 0:
		return nil, fmt.Errorf("%s: %w; name the file with the identity of one of its recipients: --identity FILE", file,
			ErrEncrypted)
	}
	return decrypt(r, ids)
}

// place renames the finished directory, unless it has its name, and removes the note. It only replaces an empty
// directory.
func (r Restoration) place(temp string) error {
	if temp != r.Dir {
		if err := os.Remove(r.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // fails unless it is an empty directory
			return fmt.Errorf("restore: %w; if it is a mount point, name a directory in it with --store badger:DIR", err)
		}
		if err := os.Rename(temp, r.Dir); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	err := syncDir(filepath.Dir(r.Dir))
	if err == nil {
		err = r.fault(4)
	}
	if err == nil {
		err = os.Remove(filepath.Join(r.Dir, noteName))
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return syncDir(r.Dir)
}

// discard removes a directory, its note last.
func discard(temp string) error {
	if err := clearDir(temp); err != nil {
		return err
	}
	return os.RemoveAll(temp)
}

// clearDir removes everything in a directory except the note.
func clearDir(dir string) error {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range names {
		if e.Name() != noteName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
