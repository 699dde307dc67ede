//go:build linux && cgo && (amd64 || arm64)

package jail

import "golang.org/x/sys/unix"

// libc lists the additional system calls of the C library in a cgo build, where it makes the threads: each thread
// registers its robust list and restartable sequences and reads its affinity to find its stack, the allocator may move
// the break, and the library sleeps before it retries making a thread for which there was no memory. They only affect
// the calling thread or the process's own memory.
var libc = []uint32{
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_GETAFFINITY, unix.SYS_BRK, unix.SYS_CLOCK_NANOSLEEP,
}

// futexes lists the operations of the Go runtime and of the C library, which also waits with a clock, and for the end
// of a thread on a word that is not private.
var futexes = []uint32{
	futexWait, futexWake, futexWaitBits, futexWaitBits | futexRealtime, futexWakeBits,
	futexWait &^ futexPrivate, futexWake &^ futexPrivate, futexWaitBits&^futexPrivate | futexRealtime,
}
