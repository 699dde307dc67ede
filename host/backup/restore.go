package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

var (
	// ErrNotEmpty reports that the directory is not empty; a restore never merges.
	ErrNotEmpty = errors.New("the directory is not empty")
	// ErrEncrypted reports that the backup is encrypted and no identity was given.
	ErrEncrypted = errors.New("the backup is encrypted")
)

// An Unpacker unpacks an archive, like UnpackApart.
type Unpacker func(ctx context.Context, archive io.Reader, dir string) (Summary, string, error)

// Restore creates the data directory dir, which must be missing or empty, from the backup in file. It first unpacks and
// verifies everything in a directory next to it, calls finish to complete that, and then renames it.
func Restore(ctx context.Context, file, dir string, ids Identities, unpack Unpacker, finish func(dir string) error) (s Summary, err error) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	dir = filepath.Clean(dir)
	if err := empty(dir); err != nil {
		return s, err
	}
	f, err := openArchive(file)
	if err != nil {
		return s, err
	}
	defer f.Close()
	r, err := plain(f, file, ids)
	if err != nil {
		return s, err
	}
	temp := dir + ".restoring"
	if err := makeTemp(temp); err != nil {
		return s, err
	}
	if s, _, err = unpack(ctx, r, temp); err == nil {
		err = finish(temp)
	}
	if err == nil {
		err = syncDir(temp)
	}
	if err == nil {
		err = place(temp, dir)
	}
	if err != nil {
		return s, errors.Join(err, os.RemoveAll(temp))
	}
	return s, nil
}

func empty(dir string) error {
	names, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("restore to %s: %w", dir, err)
	case len(names) > 0:
		return fmt.Errorf("restore to %s: %w, and a backup is never merged; name another with --store badger:DIR", dir, ErrNotEmpty)
	}
	return nil
}

func openArchive(file string) (*os.File, error) {
	fi, err := os.Stat(file) // opening another kind of file could block forever
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", file)
	}
	if err != nil {
		return nil, fmt.Errorf("open backup: %w", err)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open backup: %w", err)
	}
	return f, nil
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
		return nil, fmt.Errorf("%s: %w; name the file with the identity of one of its recipients: --identity FILE", file, ErrEncrypted)
	}
	return decrypt(r, ids)
}

// makeTemp creates a directory that no other restore is using.
func makeTemp(temp string) error {
	if err := os.MkdirAll(filepath.Dir(temp), 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	err := os.Mkdir(temp, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("restore: %s is there, so another restore is going on or was cut off; if none is, remove it", temp)
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// place renames the finished directory. It only replaces an empty directory.
func place(temp, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // fails unless it is an empty directory
		return fmt.Errorf("restore: %w; if it is a mount point, name a directory in it with --store badger:DIR", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return syncDir(filepath.Dir(dir))
}
