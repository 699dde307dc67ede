//go:build wasip1 && abi

package main

import (
	"encoding/binary"
	"strings"
	"time"
	"unsafe"
)

//go:wasmimport sluice_v1 start
func abiStart(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 emit
func abiEmit(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 checkpoint
func abiCheckpoint(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 progress
func abiProgress(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 skip
func abiSkip(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 gap
func abiGap(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 recovered
func abiRecovered(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 coverage
func abiCoverage(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 interact
func abiInteract(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 assist
func abiAssist(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 assist_status
func abiAssistStatus(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 message
func abiMessage(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 log
func abiLog(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 done
func abiDone(ptr unsafe.Pointer, n uint32) int64

//go:wasmimport sluice_v1 reply
func abiReply(ptr unsafe.Pointer, n uint32) int32

// functions maps the names of scripts, and the types of messages, to imports.
var functions = map[string]func(unsafe.Pointer, uint32) int64{
	"start": abiStart, "emit": abiEmit, "message": abiMessage, "log": abiLog,
	"checkpoint": abiCheckpoint, "STATE": abiCheckpoint,
	"progress": abiProgress, "PROGRESS": abiProgress,
	"skip": abiSkip, "SKIP_RESULT": abiSkip,
	"gap": abiGap, "DETAIL_GAP": abiGap,
	"recovered": abiRecovered, "DETAIL_GAP_RECOVERED": abiRecovered,
	"coverage": abiCoverage, "DETAIL_COVERAGE": abiCoverage,
	"interact": abiInteract, "INTERACTION": abiInteract,
	"assist": abiAssist, "ASSISTANCE": abiAssist,
	"assist_status": abiAssistStatus, "ASSISTANCE_STATUS": abiAssistStatus,
	"done": abiDone, "DONE": abiDone,
}

// A host function needs an address even for no bytes.
var empty [1]byte

func bytesAt(b []byte) (unsafe.Pointer, uint32) {
	if len(b) == 0 {
		return unsafe.Pointer(&empty), 0
	}
	return unsafe.Pointer(&b[0]), uint32(len(b))
}

// start asks for START and fetches the reply.
func start() string { return call("start", nil) }

// call calls a function and returns its reply; "" when it failed.
func call(name string, request []byte) string {
	fn := functions[name]
	if fn == nil {
		return ""
	}
	n := fn(bytesAt(request))
	if n <= 0 {
		return ""
	}
	reply := make([]byte, n)
	return string(reply[:abiReply(bytesAt(reply))])
}

// point calls a function with an address that may lie outside of memory.
func point(name string, ptr, length uint32) {
	functions[name](unsafe.Pointer(uintptr(ptr)), length)
}

// readLine does nothing: the response came with the call.
func readLine() string { return "" }

// say maps a message to its function: a RECORD to a frame of one, anything
// else to the message without its type.
func (p *player) say(message string) {
	typ := text(member(message, "type"))
	if typ == "RECORD" {
		call("emit", p.frame(message))
		return
	}
	p.keep(call(typ, []byte(withoutType(message))))
}

// minified writes an array of texts as a frame wants it.
func minified(array string) string {
	parts := items(array)
	for i, p := range parts {
		if strings.HasPrefix(p, `"`) {
			parts[i] = quote(text(p))
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// frame encodes one RECORD. A fault that a frame cannot express becomes one that is as
// wrong: an operation that does not exist, a stream beyond the scope, a key of an
// unknown kind.
func (p *player) frame(message string) []byte {
	op := map[string]byte{"": 0, "null": 0, `"upsert"`: 0, `"delete"`: 1}
	opByte, ok := op[member(message, "op")]
	if !ok {
		opByte = 9
	}
	key := member(message, "key")
	kind, keyBytes := byte(9), []byte(key)
	switch {
	case strings.HasPrefix(key, `"`):
		kind, keyBytes = 0, []byte(text(key))
	case strings.HasPrefix(key, "["):
		kind, keyBytes = 1, []byte(minified(key))
	}
	stream := len(p.streams)
	for i, name := range p.streams {
		if name == text(member(message, "stream")) {
			stream = i
		}
	}
	data := member(message, "data")
	if data == "null" {
		data = ""
	}
	at := int64(0)
	if t, err := time.Parse(time.RFC3339Nano, text(member(message, "emitted_at"))); err == nil {
		at = t.UnixMicro()
	}
	b := []byte{'S', 'R', 1, 0, 1, 0, 0, 0, opByte, kind}
	b = binary.LittleEndian.AppendUint16(b, uint16(stream))
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(keyBytes)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(append(b, keyBytes...), data...)
}
