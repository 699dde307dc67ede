package worker

import (
	"fmt"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// memoryStep is how many bytes are made usable at a time, so that a guest that grows page by page does not cause a
// system call for each page.
const memoryStep = 1 << 20

// allocate reserves the maximum size of a linear memory and makes it usable in place as it grows, so nothing is ever
// copied. It is outside the Go heap, and only the usable part counts against the worker's data limit.
func (p *peak) allocate(_, most uint64) experimental.LinearMemory {
	if most == 0 {
		return &linear{peak: p}
	}
	b, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		// the engine expects no error, and the guest has not run yet
		panic(fmt.Errorf("reserve %d bytes for the guest: %w", most, err))
	}
	return &linear{peak: p, reserved: b}
}

// A linear is the memory of one guest.
type linear struct {
	peak     *peak
	reserved []byte
	usable   uint64
}

// Reallocate returns the memory at its new size, or nil if there is no more, which makes memory.grow fail in the guest.
func (l *linear) Reallocate(size uint64) []byte {
	if size > uint64(len(l.reserved)) {
		return nil
	}
	if size > l.usable {
		to := min((size+memoryStep-1)/memoryStep*memoryStep, uint64(len(l.reserved)))
		if err := syscall.Mprotect(l.reserved[l.usable:to], syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
			return nil
		}
		l.usable = to
	}
	l.peak.note(size)
	return l.reserved[:size:size]
}

// Free returns the memory to the system.
func (l *linear) Free() {
	if l.reserved != nil {
		_ = syscall.Munmap(l.reserved) // the process ends anyway
		l.reserved, l.usable = nil, 0
	}
}
