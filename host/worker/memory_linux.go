package worker

import (
	"fmt"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// memoryStep is how much is made usable at once, so that a guest growing page
// by page does not pay a system call for each.
const memoryStep = 1 << 20

// allocate reserves the most that a linear memory can become and makes it
// usable as it grows, in place: nothing is ever copied. It
// lies outside of the Go heap and counts against the worker's data limit only
// as far as it is usable.
func (p *peak) allocate(_, most uint64) experimental.LinearMemory {
	if most == 0 {
		return &linear{peak: p}
	}
	b, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(fmt.Errorf("reserve %d bytes for the guest: %w", most, err)) // the engine takes no error, and nothing ran yet
	}
	return &linear{peak: p, reserved: b}
}

// linear is the memory of one guest.
type linear struct {
	peak     *peak
	reserved []byte
	usable   uint64
}

// Reallocate returns the memory at its new size, or nil when there is no more:
// memory.grow then fails inside of the guest.
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

// Free gives the memory back to the system, which zeroes it.
func (l *linear) Free() {
	if l.reserved != nil {
		_ = syscall.Munmap(l.reserved) // the process ends anyway
		l.reserved, l.usable = nil, 0
	}
}
