package redact

import "bytes"

// A search finds any of many texts in one pass that skips most bytes: the Wu-Manber algorithm over blocks of
// three bytes. Its cost hardly depends on the number of texts.
type search struct {
	texts [][]byte
	least int // length of the shortest text, at most 255
	// leap says how far the window may move when its last block has that hash. Where it is 0, ends has the
	// indexes of the texts whose first least bytes end in such a block.
	leap [searchHashes]uint8
	ends map[uint16][]int
}

const (
	searchBlock  = 3
	searchHashes = 1 << 13
)

func searchHash(b []byte) uint16 {
	return (uint16(b[0])<<10 ^ uint16(b[1])<<5 ^ uint16(b[2])) % searchHashes
}

// newSearch returns a search for texts of at least searchBlock bytes. There must be at least one.
func newSearch(texts [][]byte) *search {
	s := &search{texts: texts, least: len(texts[0]), ends: map[uint16][]int{}}
	for _, t := range texts {
		s.least = min(s.least, len(t))
	}
	s.least = min(s.least, 255)
	for i := range s.leap {
		s.leap[i] = uint8(s.least - searchBlock + 1)
	}
	for n, t := range texts {
		for end := searchBlock; end <= s.least; end++ {
			h := searchHash(t[end-searchBlock:])
			s.leap[h] = min(s.leap[h], uint8(s.least-end))
			if end == s.least {
				s.ends[h] = append(s.ends[h], n)
			}
		}
	}
	return s
}

// in reports whether any of the texts is in b.
func (s *search) in(b []byte) bool {
	for end := s.least; end <= len(b); {
		h := searchHash(b[end-searchBlock:])
		leap := s.leap[h]
		if leap == 0 {
			rest := b[end-s.least:]
			for _, n := range s.ends[h] {
				if bytes.HasPrefix(rest, s.texts[n]) {
					return true
				}
			}
			leap = 1
		}
		end += int(leap)
	}
	return false
}
