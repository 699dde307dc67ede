package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
)

// A readOnly is a billy.Filesystem that can read: plain files of package os,
// without the locks, links and temporary files that a sandbox has not got.
type readOnly struct{ root string }

var _ billy.Filesystem = readOnly{}

var errReadOnly = errors.New("the file system is read-only")

func (f readOnly) path(name string) string { return filepath.Join(f.root, name) }

func (f readOnly) Open(name string) (billy.File, error) {
	file, err := os.Open(f.path(name))
	if err != nil {
		return nil, err
	}
	return readOnlyFile{file}, nil
}

func (f readOnly) OpenFile(name string, flag int, _ os.FileMode) (billy.File, error) {
	if flag != os.O_RDONLY {
		return nil, errReadOnly
	}
	return f.Open(name)
}

// ReadDir leaves out what git itself never takes for a ref: lock files, and the
// hidden files that desktop systems drop anywhere.
func (f readOnly) ReadDir(name string) ([]os.FileInfo, error) {
	entries, err := os.ReadDir(f.path(name))
	if err != nil {
		return nil, err
	}
	infos := make([]os.FileInfo, 0, len(entries))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), ".lock") {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (f readOnly) Stat(name string) (os.FileInfo, error)  { return os.Stat(f.path(name)) }
func (f readOnly) Lstat(name string) (os.FileInfo, error) { return os.Lstat(f.path(name)) }
func (f readOnly) Join(elem ...string) string             { return filepath.Join(elem...) }
func (f readOnly) Root() string                           { return f.root }

func (f readOnly) Chroot(name string) (billy.Filesystem, error) {
	return readOnly{f.path(name)}, nil
}

func (readOnly) Create(string) (billy.File, error)           { return nil, errReadOnly }
func (readOnly) TempFile(string, string) (billy.File, error) { return nil, errReadOnly }
func (readOnly) Rename(string, string) error                 { return errReadOnly }
func (readOnly) Remove(string) error                         { return errReadOnly }
func (readOnly) MkdirAll(string, os.FileMode) error          { return errReadOnly }
func (readOnly) Symlink(string, string) error                { return errReadOnly }
func (readOnly) Readlink(string) (string, error)             { return "", errReadOnly }

// A readOnlyFile is a file without locks: nothing is written, and git replaces
// files whole.
type readOnlyFile struct{ *os.File }

func (readOnlyFile) Lock() error   { return nil }
func (readOnlyFile) Unlock() error { return nil }
