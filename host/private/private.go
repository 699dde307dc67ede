// Package private opens files and directories that have to be this user's alone: the
// vault, the audit log. It trusts nothing about the disk: what others can reach, what
// somebody else owns, and what is a link, a pipe or anything but what belongs there is
// refused, never followed and never repaired in silence.
//
// The error of a refusal wraps the one that is passed as unsafe, by which callers know it.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// A refusal is an error of Check: it wraps the one that was passed as unsafe, and says what to do.
type refusal struct {
	unsafe error
	text   string
}

func (r *refusal) Error() string { return r.unsafe.Error() + ": " + r.text }

func (r *refusal) Unwrap() error { return r.unsafe }

// Check refuses a file that is not of the type, or not accessible to this user alone. The error
// contains the command that repairs it.
func Check(fi fs.FileInfo, path string, typ fs.FileMode, unsafe error) error {
	text := ""
	switch {
	case fi.Mode().Type() != typ && typ == fs.ModeDir:
		text = path + " is no directory; move it away"
	case fi.Mode().Type() != typ:
		text = path + " is no regular file; move it away"
	case foreign(fi):
		text = fmt.Sprintf("%s belongs to another user; if you trust it, make it yours: chown %d %[1]s", path, os.Geteuid())
	case exposed(fi):
		text = fmt.Sprintf("others can reach %s; if nobody did, run: chmod go-rwx %[1]s", path)
	default:
		return nil
	}
	return &refusal{unsafe, text}
}

// Same refuses an opened file that is not the one that was checked before.
func Same(before, now fs.FileInfo, path string, unsafe error) error {
	if !os.SameFile(before, now) {
		return fmt.Errorf("%w: %s was replaced while it was opened", unsafe, path)
	}
	return nil
}

// OpenFile opens a regular file of this user in a directory. path is for errors.
func OpenFile(root *os.Root, name, path string, flags int, unsafe error) (*os.File, fs.FileInfo, error) {
	before, err := root.Lstat(name)
	if err == nil {
		err = Check(before, path, 0, unsafe)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(name, flags|syscall.O_NONBLOCK, 0) // it may have been replaced, and opening must not block
	if err != nil {
		return nil, nil, err
	}
	now, err := f.Stat()
	if err == nil {
		err = Same(before, now, path, unsafe)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, now, nil
}

// Sync makes changes of a directory's entries durable.
func Sync(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}

// SyncPath does the same for the directory at a path.
func SyncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}
