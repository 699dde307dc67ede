package strictjson

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// A memberName is the name of a member of an open object. All names are on one stack, those
// of the innermost object on top:
//
//	names  | a b c | x y | k1 k2 … k40 |
//	levels   0       3     5                 where each object's names begin
//	table                | 128 entries |     only for objects with many names
//
// Up to fewNames names of an object are compared one by one, by tag first. With one more
// they move to a hash table at the top of the table stack. The hash is seeded, so that a
// guest cannot choose colliding names.
// is seeded, so that a guest cannot choose names that collide.
type memberName struct {
	start int    // offset in the input, or ^offset in Scanner.text if it was escaped
	end   int    // likewise
	tag   uint64 // equal for equal names: cheapTag or the seeded hash
}

const fewNames = 16

// nameText returns the unescaped text of n.
func (s *Scanner) nameText(src []byte, n memberName) []byte {
	if n.start < 0 {
		return s.text[^n.start:n.end:n.end]
	}
	return src[n.start:n.end:n.end]
}

// addName adds n, spelled text, to the object whose names begin at top. It returns false if
// the object already has that name.
func (s *Scanner) addName(src []byte, n memberName, text []byte, top int) bool {
	if len(s.names)-top >= fewNames {
		return s.addHashed(src, n, text, top)
	}
	n.tag = cheapTag(text)
	for i := top; i < len(s.names); i++ {
		if s.names[i].tag == n.tag && bytes.Equal(s.nameText(src, s.names[i]), text) {
			return false
		}
	}
	s.names = append(s.names, n)
	return true
}

// addHashed is addName for an object with fewNames names or more.
func (s *Scanner) addHashed(src []byte, n memberName, text []byte, top int) bool {
	count := len(s.names) - top
	if count == fewNames {
		s.hashNames(src, top)
	}
	if count&(count-1) == 0 {
		s.growTable(top)
	}
	n.tag = maphash.Bytes(s.seed, text)
	table := s.table[len(s.table)-tableSize(count):]
	mask := uint64(len(table) - 1)
	slot := n.tag & mask
	for ; table[slot] != 0; slot = (slot + 1) & mask {
		old := s.names[top+int(table[slot])-1]
		if old.tag == n.tag && bytes.Equal(s.nameText(src, old), text) {
			return false
		}
	}
	s.names = append(s.names, n)
	table[slot] = uint32(count + 1)
	return true
}

// hashNames replaces the cheap tags of the innermost object by hashes.
func (s *Scanner) hashNames(src []byte, top int) {
	if !s.seeded {
		s.seed, s.seeded = maphash.MakeSeed(), true
	}
	for i := top; i < len(s.names); i++ {
		s.names[i].tag = maphash.Bytes(s.seed, s.nameText(src, s.names[i]))
	}
}

// tableSize returns the size of the table while the newest name has index last: a power of
// two, at least twice the number of names, that changes only when last is a power of two.
func tableSize(last int) int { return 1 << (bits.Len(uint(last)) + 1) }

// growTable makes or doubles the table of the innermost object.
func (s *Scanner) growTable(top int) {
	count := len(s.names) - top
	start := len(s.table)
	if count > fewNames {
		start -= tableSize(count - 1)
	}
	size := tableSize(count)
	for len(s.table) < start+size {
		s.table = append(s.table, 0)
	}
	table := s.table[start:]
	clear(table)
	mask := uint64(size - 1)
	for i, n := range s.names[top:] {
		slot := n.tag & mask
		for table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		table[slot] = uint32(i + 1)
	}
}

// dropNames forgets the names of the innermost object.
func (s *Scanner) dropNames(top int) {
	if count := len(s.names) - top; count > fewNames {
		s.table = s.table[:len(s.table)-tableSize(count-1)]
	}
	s.names = s.names[:top]
}

// cheapTag distinguishes most names by length, first and last bytes. For up to seven bytes
// it is the name itself.
func cheapTag(text []byte) uint64 {
	n := len(text)
	if n >= 8 {
		last := binary.LittleEndian.Uint64(text[n-8:])
		return binary.LittleEndian.Uint64(text) ^ bits.RotateLeft64(last, 29) ^ uint64(n)<<56
	}
	tag := uint64(n) << 56
	if n >= 4 {
		return tag | uint64(binary.LittleEndian.Uint32(text)) | uint64(binary.LittleEndian.Uint32(text[n-4:]))<<(8*n-32)
	}
	if n > 0 {
		tag |= uint64(text[0]) | uint64(text[n/2])<<(n/2*8) | uint64(text[n-1])<<(n*8-8)
	}
	return tag
}
