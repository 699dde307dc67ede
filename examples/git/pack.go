package main

import (
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// A content is what an object holds. The data is shared and must not be changed.
type content struct {
	kind plumbing.ObjectType
	data []byte
}

const (
	// maxObject bounds what is unpacked of one object.
	maxObject = 16 << 20
	// maxChain is git's own bound on deltas upon deltas.
	maxChain = 4095
)

// errTooLarge is an object above maxObject.
var errTooLarge = errors.New("object too large")

// A pack reads objects out of one .pack file.
type pack struct {
	index *packIndex
	file  *pagedFile
	cache *recent[packKey, content]
	z     *inflater
}

// A packKey names an object among those of all packs that share one cache.
type packKey struct {
	pack   *pack
	offset int64
}

// A packEntry is the head of an object in a pack.
type packEntry struct {
	kind plumbing.ObjectType
	size int64 // unpacked, of the object or of the delta
	data int64 // offset of the zlib stream
	base int64 // offset of a delta's base
}

// read returns the object that starts at offset. Every object on the way to it
// is kept: history goes from one version of a file to the next, and so do the
// deltas of a pack.
func (p *pack) read(offset int64, depth int) (content, error) {
	if c, ok := p.cache.get(packKey{p, offset}); ok {
		return c, nil
	}
	e, err := p.entry(offset)
	if err != nil {
		return content{}, err
	}
	data, err := p.unpack(e)
	if err != nil {
		return content{}, err
	}
	c := content{e.kind, data}
	if e.base >= 0 {
		if depth == maxChain {
			return content{}, fmt.Errorf("pack: more than %d deltas for one object", maxChain)
		}
		if c, err = p.patch(e, data, depth); err != nil {
			return content{}, err
		}
	}
	p.cache.put(packKey{p, offset}, c)
	return c, nil
}

// patch applies a delta to its base.
func (p *pack) patch(e packEntry, delta []byte, depth int) (content, error) {
	size, ok := patchedSize(delta)
	if !ok {
		return content{}, packfile.ErrInvalidDelta
	}
	if size > maxObject {
		return content{}, errTooLarge
	}
	base, err := p.read(e.base, depth+1)
	if err != nil {
		return content{}, err
	}
	if size == 0 {
		return content{kind: base.kind}, nil
	}
	data, err := packfile.PatchDelta(base.data, delta)
	if err != nil {
		return content{}, fmt.Errorf("pack: %w", err)
	}
	return content{base.kind, data}, nil
}

// entry reads the head at offset: three bits of type and a length of seven bits
// a byte, then for a delta where its base is.
func (p *pack) entry(offset int64) (packEntry, error) {
	const longest = 10 + hashSize
	b, err := p.file.slice(offset, longest)
	if err != nil {
		return packEntry{}, fmt.Errorf("pack: %w", err)
	}
	e := packEntry{kind: plumbing.ObjectType(b[0] >> 4 & 7), size: int64(b[0] & 15), base: -1}
	n, shift := 1, 4
	for b[n-1]&0x80 != 0 {
		if n == len(b) || shift > 53 {
			return packEntry{}, fmt.Errorf("pack: bad length at %d", offset)
		}
		e.size |= int64(b[n]&0x7f) << shift
		n, shift = n+1, shift+7
	}
	used, err := p.readBase(&e, b[n:], offset)
	e.data = offset + int64(n+used)
	return e, err
}

// readBase reads what stands between the length and the data: nothing, an
// offset backwards, or a hash.
func (p *pack) readBase(e *packEntry, b []byte, offset int64) (used int, err error) {
	switch e.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return 0, nil
	case plumbing.OFSDeltaObject:
		back := int64(0)
		for i, c := range b {
			if i == 8 {
				break
			}
			if i > 0 {
				back = (back + 1) << 7
			}
			back |= int64(c & 0x7f)
			if c&0x80 == 0 {
				e.base = offset - back
				if back == 0 || e.base < 0 {
					break
				}
				return i + 1, nil
			}
		}
		return 0, fmt.Errorf("pack: bad base at %d", offset)
	case plumbing.REFDeltaObject:
		if len(b) < hashSize {
			return 0, fmt.Errorf("pack: bad base at %d", offset)
		}
		base, ok, err := p.index.find(plumbing.Hash(b[:hashSize]))
		if err == nil && !ok {
			err = plumbing.ErrObjectNotFound
		}
		e.base = base
		return hashSize, err
	default:
		return 0, fmt.Errorf("pack: unknown object type %d at %d", e.kind, offset)
	}
}

// unpack inflates what belongs to an entry.
func (p *pack) unpack(e packEntry) ([]byte, error) {
	if e.size > maxObject {
		return nil, errTooLarge
	}
	packed := e.size + e.size/1000 + 128 // no zlib stream is longer
	src, err := p.file.slice(e.data, int(packed))
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return p.z.inflate(src, int(e.size))
}

// patchedSize reads how long the outcome of a delta is: the second of the two
// numbers at its start.
func patchedSize(delta []byte) (size int64, ok bool) {
	for range 2 {
		size, ok = 0, false
		for shift := 0; len(delta) > 0 && shift < 56; shift += 7 {
			b := delta[0]
			delta = delta[1:]
			size |= int64(b&0x7f) << shift
			if b&0x80 == 0 {
				ok = true
				break
			}
		}
		if !ok {
			return 0, false
		}
	}
	return size, true
}
