//go:build linux && !cgo && (amd64 || arm64)

package jail

// libc adds nothing where there is no C library.
var libc []uint32

// futexes are the operations of the Go runtime: wait and wake, within the process.
var futexes = []uint32{futexWait, futexWake}
