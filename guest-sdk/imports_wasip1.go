package guest

import "unsafe"

// The functions of the ABI as a module imports them (G6, G7, G10). The linker
// drops those that a connector cannot reach, so that its import section tells
// what it can do at all (G4).

//go:wasmimport sluice_v1 start
//go:noescape
func importStart(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 emit
//go:noescape
func importEmit(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 checkpoint
//go:noescape
func importCheckpoint(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 progress
//go:noescape
func importProgress(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 skip
//go:noescape
func importSkip(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 gap
//go:noescape
func importGap(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 recovered
//go:noescape
func importRecovered(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 coverage
//go:noescape
func importCoverage(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 interact
//go:noescape
func importInteract(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 assist
//go:noescape
func importAssist(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 assist_status
//go:noescape
func importAssistStatus(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 message
//go:noescape
func importMessage(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 log
//go:noescape
func importLog(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 done
//go:noescape
func importDone(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 reply
//go:noescape
func importReply(dst unsafe.Pointer, size uint32) uint32

//go:wasmimport sluice_v1 read
//go:noescape
func importRead(handle int32, dst unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 close
//go:noescape
func importClose(handle int32) int64

//go:wasmimport sluice_v1_network exchange
//go:noescape
func importNetworkExchange(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1_browser call
//go:noescape
func importBrowserCall(ptr unsafe.Pointer, size uint32) int64
