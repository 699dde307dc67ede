//go:build linux && !cgo && (amd64 || arm64)

package jail

// libc is empty without a C library.
var libc []uint32

// futexes lists the operations of the Go runtime: wait and wake within the process.
var futexes = []uint32{futexWait, futexWake}
