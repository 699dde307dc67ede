//go:build !cgo

package jail

// spareRecords is the number of threads that the runtime counts but does not have.
const spareRecords = 0
