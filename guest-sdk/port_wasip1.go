package guest

import (
	"context"
	"os"
	"unsafe"

	"github.com/sluicehost/sluice/abi"
)

// A port is the connection to the host. It has one method per import, so that the linker
// drops the unused ones.
type port struct{}

func (port) start() ([]byte, error)                { return replyTo(importStart(nil, 0)) }
func (port) checkpoint(m []byte) ([]byte, error)   { return replyTo(importCheckpoint(span(m))) }
func (port) progress(m []byte) ([]byte, error)     { return replyTo(importProgress(span(m))) }
func (port) skip(m []byte) ([]byte, error)         { return replyTo(importSkip(span(m))) }
func (port) gap(m []byte) ([]byte, error)          { return replyTo(importGap(span(m))) }
func (port) recovered(m []byte) ([]byte, error)    { return replyTo(importRecovered(span(m))) }
func (port) coverage(m []byte) ([]byte, error)     { return replyTo(importCoverage(span(m))) }
func (port) interact(m []byte) ([]byte, error)     { return replyTo(importInteract(span(m))) }
func (port) assist(m []byte) ([]byte, error)       { return replyTo(importAssist(span(m))) }
func (port) assistStatus(m []byte) ([]byte, error) { return replyTo(importAssistStatus(span(m))) }
func (port) message(m []byte) ([]byte, error)      { return replyTo(importMessage(span(m))) }
func (port) log(m []byte) ([]byte, error)          { return replyTo(importLog(span(m))) }
func (port) done(m []byte) ([]byte, error)         { return replyTo(importDone(span(m))) }
func (port) exchange(m []byte) ([]byte, error)     { return replyTo(importNetworkExchange(span(m))) }
func (port) browser(m []byte) ([]byte, error)      { return replyTo(importBrowserCall(span(m))) }

func (port) attach(m []byte) ([]byte, error)     { return replyTo(importAttach(span(m))) }
func (port) attachPart(m []byte) ([]byte, error) { return replyTo(importAttachPart(span(m))) }

func (port) emit(frame []byte) error {
	if n := importEmit(span(frame)); n < 0 {
		return failure(n)
	}
	return nil
}

func (port) read(handle int32, dst []byte) (int, error) {
	ptr, size := span(dst)
	n := importRead(handle, ptr, size)
	if n < 0 {
		return 0, failure(n)
	}
	return int(n), nil
}

func (port) close(handle int32) error {
	if n := importClose(handle); n < 0 {
		return failure(n)
	}
	return nil
}

// span returns a slice as imports take it. The memory of a Go guest never moves.
func span(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

// replyTo fetches the reply of a call that returned n.
func replyTo(n int64) ([]byte, error) {
	if n < 0 {
		return nil, failure(n)
	}
	if n == 0 {
		return nil, nil
	}
	b := make([]byte, n)
	return fetch(b), nil
}

// failure returns the error of a call that returned n, with its text.
func failure(n int64) error {
	return newError(abi.Errno(-n), fetch(make([]byte, abi.MaxErrorText)))
}

// fetch fills b from the pending reply and returns the filled part.
func fetch(b []byte) []byte {
	got := 0
	for got < len(b) {
		n := importReply(span(b[got:]))
		if n == 0 {
			break
		}
		got += int(n)
	}
	return b[:got]
}

// Main performs the run for which the host started this module, and exits.
func Main(c Connector) { os.Exit(drive(context.Background(), c, port{})) }

// The functions of the ABI. The linker drops those that a connector cannot reach, so that
// the import section of a module shows what it can do.

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

//go:wasmimport sluice_v1 attach
//go:noescape
func importAttach(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1 attach_part
//go:noescape
func importAttachPart(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1_network exchange
//go:noescape
func importNetworkExchange(ptr unsafe.Pointer, size uint32) int64

//go:wasmimport sluice_v1_browser call
//go:noescape
func importBrowserCall(ptr unsafe.Pointer, size uint32) int64
