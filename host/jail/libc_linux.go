//go:build linux && !cgo && (amd64 || arm64)

package jail

// libc adds nothing where there is no C library.
var libc []uint32
