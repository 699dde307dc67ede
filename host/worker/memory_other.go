//go:build !linux

package worker

import "github.com/tetratelabs/wazero/experimental"

// allocate uses the maximum as capacity, so that growing never copies. These systems commit memory when it is first
// accessed.
func (p *peak) allocate(_, most uint64) experimental.LinearMemory {
	return &linear{peak: p, most: most}
}

type linear struct {
	peak *peak
	most uint64
	b    []byte
}

// Reallocate returns the memory at its new size, or nil if there is no more.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.most {
		return nil
	}
	if l.b == nil {
		l.b = make([]byte, size, l.most)
	}
	l.b = l.b[:size]
	l.peak.note(size)
	return l.b
}

// Free releases the memory.
func (l *linear) Free() { l.b = nil }
