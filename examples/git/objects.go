package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	pageMemory   = 16 << 20
	objectMemory = 40 << 20
	// maxAlternates bounds how many object stores are looked through.
	maxAlternates = 16
)

// An objects reads the objects of a repository, packed or loose. It reads only
// and takes no locks. A missing object is plumbing.ErrObjectNotFound.
//
// go-git's own storage does the same, but computes the SHA-1 of whatever passes
// through its cache and holds the index of every pack in memory twice: under
// wasm the one costs more than all the rest, and the other runs out of a
// guest's 256 MiB with a repository of a million objects.
type objects struct {
	dirs  []string // object directories, the repository's own first
	packs []*pack
	loose *recent[plumbing.Hash, content]
	pager *pager
	z     inflater
}

// openObjects opens the object directory of a repository and those that it
// borrows from, as far as they can be reached.
func openObjects(dir string) (*objects, error) {
	o := &objects{
		loose: newRecent[plumbing.Hash](objectMemory/4, contentSize),
		pager: newPager(pageMemory),
	}
	o.addDir(dir)
	cache := newRecent[packKey](objectMemory, contentSize)
	for _, d := range o.dirs {
		if err := o.openPacks(filepath.Join(d, "pack"), cache); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

func contentSize(c content) int { return len(c.data) + 64 }

// Close closes the packs.
func (o *objects) Close() error { return o.pager.Close() }

// addDir adds an object directory and its alternates. What lies outside of the
// mount cannot be opened and is left out; objects that are only there turn up
// as missing.
func (o *objects) addDir(dir string) {
	dir = filepath.Clean(dir)
	if len(o.dirs) == maxAlternates || slices.Contains(o.dirs, dir) {
		return
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return
	}
	o.dirs = append(o.dirs, dir)
	b, err := os.ReadFile(filepath.Join(dir, "info", "alternates"))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		o.addDir(line)
	}
}

func (o *objects) openPacks(dir string, cache *recent[packKey, content]) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list packs: %w", err)
	}
	for _, e := range entries {
		name, isIndex := strings.CutSuffix(e.Name(), ".idx")
		if !isIndex || !strings.HasPrefix(name, "pack-") {
			continue
		}
		p, err := o.openPack(filepath.Join(dir, name), cache)
		if errors.Is(err, fs.ErrNotExist) {
			continue // repacked meanwhile
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		o.packs = append(o.packs, p)
	}
	return nil
}

func (o *objects) openPack(name string, cache *recent[packKey, content]) (*pack, error) {
	index, err := o.pager.file(name + ".idx")
	if err != nil {
		return nil, err
	}
	file, err := o.pager.file(name + ".pack")
	if err != nil {
		return nil, err
	}
	x, err := openIndex(index)
	if err != nil {
		return nil, err
	}
	return &pack{index: x, file: file, cache: cache, z: &o.z}, nil
}

// read returns an object of any type.
func (o *objects) read(h plumbing.Hash) (content, error) {
	for i, p := range o.packs {
		offset, ok, err := p.index.find(h)
		if err != nil {
			return content{}, err
		}
		if !ok {
			continue
		}
		if i > 0 { // the next one is likely to be in the same pack
			o.packs[0], o.packs[i] = o.packs[i], o.packs[0]
		}
		return p.read(offset, 0)
	}
	return o.readLoose(h)
}

// readKind returns an object of one type.
func (o *objects) readKind(h plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	c, err := o.read(h)
	if err != nil {
		return nil, err
	}
	if c.kind != kind {
		return nil, fmt.Errorf("object %s is a %s, not a %s", h, c.kind, kind)
	}
	return c.data, nil
}

// readLoose reads a file of its own: a zlib stream of "type size\x00" and the
// data.
func (o *objects) readLoose(h plumbing.Hash) (content, error) {
	if c, ok := o.loose.get(h); ok {
		return c, nil
	}
	name := h.String()
	for _, dir := range o.dirs {
		path := filepath.Join(dir, name[:2], name[2:])
		st, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return content{}, fmt.Errorf("object %s: %w", name, err)
		}
		if st.Size() > maxObject {
			return content{}, errTooLarge
		}
		packed, err := os.ReadFile(path)
		if err != nil {
			return content{}, fmt.Errorf("object %s: %w", name, err)
		}
		c, err := o.parseLoose(packed)
		if err != nil {
			return content{}, fmt.Errorf("object %s: %w", name, err)
		}
		o.loose.put(h, c)
		return c, nil
	}
	return content{}, plumbing.ErrObjectNotFound
}

func (o *objects) parseLoose(packed []byte) (content, error) {
	data, whole, err := o.z.inflateAll(packed, maxObject+64)
	if err != nil {
		return content{}, err
	}
	if !whole {
		return content{}, errTooLarge
	}
	head, body, found := bytes.Cut(data, []byte{0})
	kindText, sizeText, _ := strings.Cut(string(head[:min(len(head), 32)]), " ")
	kind, err := plumbing.ParseObjectType(kindText)
	if size, sizeErr := strconv.Atoi(sizeText); err != nil || sizeErr != nil || !found || size != len(body) {
		return content{}, fmt.Errorf("bad loose object header")
	}
	return content{kind, body}, nil
}
