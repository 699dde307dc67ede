package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxFiles    = 50_000
	maxFileSize = 32 << 20
	maxDepth    = 32
)

// A folder is the calendar files below the mounted directory, by path.
type folder struct {
	root  string
	files []file
	more  bool // there are too many files or directories to list
}

// A file is one of them. path is relative, with slashes.
type file struct {
	path string
	size int64
	time int64 // of its last change, in ns
}

// openFolder lists the files. Links are not followed; hidden files are left out.
func openFolder(root string) (*folder, error) {
	f := &folder{root: root}
	if err := f.list("", 0); err != nil {
		return nil, fmt.Errorf("list calendars: %w", err)
	}
	slices.SortFunc(f.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return f, nil
}

func (f *folder) list(dir string, depth int) error {
	if depth > maxDepth {
		f.more = true
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(f.root, filepath.FromSlash(dir)))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := e.Name()
		if dir != "" {
			path = dir + "/" + path
		}
		if e.IsDir() {
			err = f.list(path, depth+1)
		} else if e.Type().IsRegular() && isCalendar(path) {
			err = f.add(path, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isCalendar(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".ics", ".ical", ".icalendar":
		return true
	default:
		return false
	}
}

func (f *folder) add(path string, e fs.DirEntry) error {
	if len(f.files) == maxFiles {
		f.more = true
		return nil
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.files = append(f.files, file{path, info.Size(), info.ModTime().UnixNano()})
	return nil
}

// stamp is a digest of what the file system says about the files: while it stays the
// same, no file has to be read.
func (f *folder) stamp() string {
	h := sha256.New()
	for _, one := range f.files {
		fmt.Fprintf(h, "%q %d %d\n", one.path, one.size, one.time)
	}
	return short(h.Sum(nil))
}

var errFileTooLarge = fmt.Errorf("the file is larger than %d MiB", maxFileSize>>20)

// read returns the content of a file.
func (f *folder) read(path string) ([]byte, error) {
	file, err := os.Open(filepath.Join(f.root, filepath.FromSlash(path)))
	if err != nil {
		return nil, errors.New("it cannot be opened")
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	if len(b) > maxFileSize {
		return nil, errFileTooLarge
	}
	return b, nil
}

// short is the first half of a SHA-256, in hex.
func short(sum []byte) string { return hex.EncodeToString(sum[:16]) }
