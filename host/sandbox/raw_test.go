package sandbox_test

import (
	"github.com/sluicehost/sluice/abi"
)

// Instructions used by the hand-written guests.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opEnd         = 0x0b
	opBr          = 0x0c
	opCall        = 0x10
	opIndirect    = 0x11
	opDrop        = 0x1a
	opLoad        = 0x28
	opStore       = 0x36
	opGrow        = 0x40
	opI32         = 0x41
	opI64         = 0x42
	opDiv         = 0x6d
	blockEmpty    = 0x40
)

// raw is a connector whose _start is the given instructions. Function 0 is
// progress, 1 is emit, 2 is proc_exit, 3 is reply, 4 is browser call; _start is 5.
func raw(code ...byte) *parts {
	return minimal().
		with(1, vec(
			[]byte{0x60, 0, 0},                   // 0: nothing
			[]byte{0x60, 2, 0x7f, 0x7f, 1, 0x7e}, // 1: ii>I
			[]byte{0x60, 1, 0x7f, 0},             // 2: i>
			[]byte{0x60, 2, 0x7f, 0x7f, 1, 0x7f}, // 3: ii>i
		)).
		with(2, vec(
			imported(abi.ModuleCore, "progress", 0, 1),
			imported(abi.ModuleCore, "emit", 0, 1),
			imported(abi.ModuleWASI, "proc_exit", 0, 2),
			imported(abi.ModuleCore, "reply", 0, 3),
			imported(abi.ModuleBrowser, "call", 0, 1),
		)).
		with(7, vec(export("memory", 2, 0), export("_start", 0, 5))).
		with(10, vec(body(append(code, opEnd)...)))
}

// i32 pushes a constant.
func i32(v int64) []byte {
	b := []byte{opI32}
	for v = int64(int32(uint32(v))); v < -64 || v > 63; v >>= 7 {
		b = append(b, byte(v)&0x7f|0x80)
	}
	return append(b, byte(v)&0x7f)
}

// calling calls an import with two constants and drops its result.
func calling(function byte, ptr, n int64) []byte {
	return join(i32(ptr), i32(n), []byte{opCall, function, opDrop})
}

const (
	rawProgress = 0
	rawEmit     = 1
	rawExit     = 2
	rawReply    = 3
	rawBrowser  = 4
	rawStart    = 5
)

// forever is an endless loop around instructions.
func forever(code ...byte) []byte {
	return join([]byte{opLoop, blockEmpty}, code, []byte{opBr, 0, opEnd})
}
