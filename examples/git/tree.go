package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// maxTreeDepth bounds directories within directories.
const maxTreeDepth = 256

// errTooMany is a commit that changes more files than its reader wants.
var errTooMany = errors.New("too many changed files")

// An entry is one side of a changed file. The zero entry is a file that is not
// there.
type entry struct {
	path string
	mode filemode.FileMode
	hash plumbing.Hash
}

// A change is one file that two trees have different.
type change struct {
	from, to entry
	renamed  bool
}

// A comparer compares trees. Subtrees with the same hash are never read, which
// is nearly all of them.
type comparer struct {
	objects *objects
	max     int
	changes []change
}

// compare returns what changed from one tree to another, sorted by path. The
// zero hash is the empty tree.
func (c *comparer) compare(from, to plumbing.Hash) ([]change, error) {
	c.changes = c.changes[:0]
	err := c.trees("", from, to, 0)
	return c.changes, err
}

func (c *comparer) trees(dir string, from, to plumbing.Hash, depth int) error {
	if from == to {
		return nil
	}
	if depth == maxTreeDepth {
		return fmt.Errorf("tree %s: more than %d directories deep", to, maxTreeDepth)
	}
	a, err := c.open(from)
	if err != nil {
		return err
	}
	b, err := c.open(to)
	if err != nil {
		return err
	}
	for a.ok || b.ok {
		order := byName(a, b)
		var was, is treeEntry
		if order <= 0 {
			was = a.treeEntry
		}
		if order >= 0 {
			is = b.treeEntry
		}
		if was.mode != is.mode || was.hash != is.hash {
			if err := c.entries(dir, was, is, depth); err != nil {
				return err
			}
		}
		if order <= 0 {
			err = a.next()
		}
		if order >= 0 && err == nil {
			err = b.next()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries compares two entries of one name, one of which may not be there.
func (c *comparer) entries(dir string, was, is treeEntry, depth int) error {
	name := was.name
	if name == nil {
		name = is.name
	}
	path := dir + string(name)
	wasTree, isTree := was.mode == filemode.Dir, is.mode == filemode.Dir
	if wasTree || isTree {
		var from, to plumbing.Hash
		if wasTree {
			from = was.hash
		}
		if isTree {
			to = is.hash
		}
		if err := c.trees(path+"/", from, to, depth+1); err != nil {
			return err
		}
	}
	var ch change
	if !wasTree && was.name != nil {
		ch.from = entry{path, was.mode, was.hash}
	}
	if !isTree && is.name != nil {
		ch.to = entry{path, is.mode, is.hash}
	}
	if ch == (change{}) {
		return nil
	}
	if len(c.changes) == c.max {
		return errTooMany
	}
	c.changes = append(c.changes, ch)
	return nil
}

func (c *comparer) open(h plumbing.Hash) (*treeReader, error) {
	if h.IsZero() {
		return &treeReader{}, nil
	}
	data, err := c.objects.readKind(h, plumbing.TreeObject)
	if err != nil {
		return nil, err
	}
	r := &treeReader{rest: data}
	return r, r.next()
}

// A treeEntry is one line of a tree; its name is part of the tree's data.
type treeEntry struct {
	mode filemode.FileMode
	name []byte
	hash plumbing.Hash
}

// A treeReader reads the entries of a tree: octal mode, space, name, NUL, hash.
type treeReader struct {
	treeEntry
	ok   bool // there is an entry
	rest []byte
}

var errBadTree = errors.New("malformed tree")

func (r *treeReader) next() error {
	r.ok = len(r.rest) > 0
	if !r.ok {
		r.treeEntry = treeEntry{}
		return nil
	}
	space := bytes.IndexByte(r.rest, ' ')
	if space < 1 || space > 7 {
		return errBadTree
	}
	mode := filemode.FileMode(0)
	for _, c := range r.rest[:space] {
		if c < '0' || c > '7' {
			return errBadTree
		}
		mode = mode<<3 | filemode.FileMode(c-'0')
	}
	rest := r.rest[space+1:]
	end := bytes.IndexByte(rest, 0)
	if end < 1 || len(rest) < end+1+hashSize {
		return errBadTree
	}
	r.mode, r.name = mode, rest[:end]
	copy(r.hash[:], rest[end+1:])
	r.rest = rest[end+1+hashSize:]
	return nil
}

// byName says which of two entries comes first: trees are sorted as if the name
// of a directory ended in a slash. A file and a directory of one name are
// therefore not together, and are two changes.
func byName(a, b *treeReader) int {
	switch {
	case !a.ok:
		return 1
	case !b.ok:
		return -1
	}
	n := min(len(a.name), len(b.name))
	if order := bytes.Compare(a.name[:n], b.name[:n]); order != 0 {
		return order
	}
	return int(after(a, n)) - int(after(b, n))
}

// after is what the order sees at position n of an entry's name.
func after(r *treeReader, n int) byte {
	switch {
	case n < len(r.name):
		return r.name[n]
	case r.mode == filemode.Dir:
		return '/'
	default:
		return 0
	}
}
