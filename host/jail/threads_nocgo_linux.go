//go:build !cgo

package jail

// spareRecords are threads that the runtime counts and has not.
const spareRecords = 0
