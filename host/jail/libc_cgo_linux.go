//go:build linux && cgo && (amd64 || arm64)

package jail

import "golang.org/x/sys/unix"

// libc is what the C library adds in a build with cgo, where it makes the
// threads: each registers its robust list and its restartable sequences, looks
// at its affinity to learn its stack, its allocator may move the break, and it
// sleeps before it tries again to make a thread for which there was no memory.
// All of it concerns the calling thread or the process's own memory.
var libc = []uint32{
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_GETAFFINITY, unix.SYS_BRK, unix.SYS_CLOCK_NANOSLEEP,
}

// futexes are the operations of the Go runtime and of the C library, which waits
// with a clock, and for the end of a thread, whose word is not private.
var futexes = []uint32{
	futexWait, futexWake, futexWaitBits, futexWaitBits | futexRealtime, futexWakeBits,
	futexWait &^ futexPrivate, futexWake &^ futexPrivate, futexWaitBits&^futexPrivate | futexRealtime,
}
