//go:build cgo

package jail

// spareRecords are threads that the runtime counts and has not: with cgo, one for a
// thread that C may make and call Go from.
const spareRecords = 1
