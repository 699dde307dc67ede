//go:build cgo

package jail

// spareRecords is the number of threads that the runtime counts but does not have: with cgo there is one for a thread
// made by C that may call Go.
const spareRecords = 1
