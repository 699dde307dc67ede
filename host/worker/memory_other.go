//go:build !linux

package worker

import "github.com/tetratelabs/wazero/experimental"

// allocate takes the capacity from the maximum, so that growing never copies; systems here
// commit memory when it is touched.
func (p *peak) allocate(_, most uint64) experimental.LinearMemory {
	return &linear{peak: p, most: most}
}

type linear struct {
	peak *peak
	most uint64
	b    []byte
}

// Reallocate returns the memory at its new size, or nil when there is no more.
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

// Free drops the memory.
func (l *linear) Free() { l.b = nil }
