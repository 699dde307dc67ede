package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
)

const hashSize = len(plumbing.Hash{})

// A packIndex finds objects of one pack by hash, in an .idx file of version 2:
//
//	"\xfftOc" 2  fanout [256]u32  hashes [n][20]  checksums [n]u32  offsets [n]u32  far offsets u64…
//
// It stays on disk: the index of a large repository would fill a guest's
// memory.
type packIndex struct {
	file   *pagedFile
	fanout [256]uint32 // objects whose hash starts with that byte or a lower one
}

const (
	indexHeader = 8
	hashesStart = indexHeader + 256*4
)

func openIndex(file *pagedFile) (*packIndex, error) {
	head, err := file.slice(0, hashesStart)
	if err != nil || len(head) < hashesStart {
		return nil, fmt.Errorf("pack index: too short")
	}
	if !bytes.Equal(head[:indexHeader], []byte("\xfftOc\x00\x00\x00\x02")) {
		return nil, fmt.Errorf("pack index: not of version 2")
	}
	x := &packIndex{file: file}
	last := uint32(0)
	for i := range x.fanout {
		n := binary.BigEndian.Uint32(head[indexHeader+4*i:])
		if n < last {
			return nil, fmt.Errorf("pack index: the fanout goes down")
		}
		x.fanout[i], last = n, n
	}
	if int64(last)*(int64(hashSize)+8) > file.size {
		return nil, fmt.Errorf("pack index: shorter than its %d objects", last)
	}
	return x, nil
}

// find returns where in the pack an object starts.
func (x *packIndex) find(h plumbing.Hash) (offset int64, ok bool, err error) {
	low, high := int64(0), int64(x.fanout[h[0]])
	if h[0] > 0 {
		low = int64(x.fanout[h[0]-1])
	}
	for low < high {
		mid := (low + high) / 2
		at, err := x.file.slice(hashesStart+mid*int64(hashSize), hashSize)
		if err != nil {
			return 0, false, fmt.Errorf("pack index: %w", err)
		}
		switch bytes.Compare(h[:], at) {
		case 0:
			offset, err = x.offset(mid)
			return offset, err == nil, err
		case -1:
			high = mid
		default:
			low = mid + 1
		}
	}
	return 0, false, nil
}

// offset returns the offset of the object that is the i-th by hash.
func (x *packIndex) offset(i int64) (int64, error) {
	n := int64(x.fanout[255])
	near := hashesStart + n*int64(hashSize+4)
	b, err := x.file.slice(near+4*i, 4)
	if err != nil || len(b) < 4 {
		return 0, fmt.Errorf("pack index: no offset: %w", err)
	}
	v := binary.BigEndian.Uint32(b)
	if v&(1<<31) == 0 {
		return int64(v), nil
	}
	b, err = x.file.slice(near+4*n+8*int64(v&^(1<<31)), 8)
	if err != nil || len(b) < 8 {
		return 0, fmt.Errorf("pack index: no far offset: %w", err)
	}
	return int64(binary.BigEndian.Uint64(b) &^ (1 << 63)), nil
}
