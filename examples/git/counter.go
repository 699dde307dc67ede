package main

import (
	"bytes"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// A counter reads both sides of changes. It belongs to one walk.
type counter struct {
	objects *objects
	lines   *lineCounter
	lacking int // files that the repository has not got
}

// A measure is what a change did to its file.
type measure struct {
	lineCount
	binary bool
}

// measure counts the lines of a change. Numbers are unknown for binary files,
// those above maxObject, and those that the repository lacks.
func (c *counter) measure(ch change) (measure, error) {
	if ch.from.hash == ch.to.hash && ch.from.mode != filemode.Submodule {
		binary, err := c.binary(ch.to)
		if binary || err != nil {
			return measure{unknownLines, binary}, err
		}
		return measure{}, nil
	}
	from, ok, err := c.blob(ch.from)
	if err != nil || !ok {
		return measure{lineCount: unknownLines}, err
	}
	to, ok, err := c.blob(ch.to)
	if err != nil || !ok {
		return measure{lineCount: unknownLines}, err
	}
	if isBinary(from) || isBinary(to) {
		return measure{unknownLines, true}, nil
	}
	return measure{lineCount: c.lines.count(from, to)}, nil
}

// binary reports whether a file that only moved is binary.
func (c *counter) binary(e entry) (bool, error) {
	data, ok, err := c.blob(e)
	return ok && isBinary(data), err
}

// blob returns the content of one side of a change: nothing for a side that does not
// exist, and false for one that cannot be read. A submodule has the one line that git
// shows for it.
func (c *counter) blob(e entry) (data []byte, ok bool, err error) {
	if e == (entry{}) {
		return nil, true, nil
	}
	if e.mode == filemode.Submodule {
		return []byte("Subproject commit " + e.hash.String() + "\n"), true, nil
	}
	data, err = c.objects.readKind(e.hash, plumbing.BlobObject)
	switch {
	case err == nil:
		return data, true, nil
	case errors.Is(err, plumbing.ErrObjectNotFound):
		c.lacking++
		return nil, false, nil
	case errors.Is(err, errTooLarge):
		return nil, false, nil
	default:
		return nil, false, err
	}
}

// isBinary looks for a NUL near the start, as git does.
func isBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 }
