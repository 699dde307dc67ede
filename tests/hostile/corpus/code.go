package corpus

import "encoding/binary"

// Code is a sequence of instructions.
type Code []byte

// Seq joins sequences.
func Seq(parts ...Code) Code {
	var c Code
	for _, p := range parts {
		c = append(c, p...)
	}
	return c
}

// Op is raw instruction bytes.
func Op(b ...byte) Code { return b }

// Instructions without immediates.
var (
	Unreachable = Op(0x00)
	Return      = Op(0x0f)
	Drop        = Op(0x1a)
	Add         = Op(0x6a) // i32
	Sub         = Op(0x6b)
	EqzI32      = Op(0x45)
	EqzI64      = Op(0x50)
	NeI32       = Op(0x47)
	Wrap        = Op(0xa7) // i64 to i32
	MemorySize  = Op(0x3f, 0)
	MemoryGrow  = Op(0x40, 0)
	MemoryFill  = Op(0xfc, 0x0b, 0)    // address, value, length
	MemoryCopy  = Op(0xfc, 0x0a, 0, 0) // destination, source, length
)

// I32 and I64 push constants.
func I32(v int32) Code { return sleb(Op(0x41), int64(v)) }
func I64(v int64) Code { return sleb(Op(0x42), v) }

// U32 pushes a pointer or length, also those that look negative.
func U32(v uint32) Code { return I32(int32(v)) }

func Get(local uint32) Code { return Seq(Op(0x20), uleb(uint64(local))) }
func Set(local uint32) Code { return Seq(Op(0x21), uleb(uint64(local))) }

// Load and Store work on i32 at an address plus offset.
func Load(offset uint32) Code  { return Seq(Op(0x28, 2), uleb(uint64(offset))) }
func Store(offset uint32) Code { return Seq(Op(0x36, 2), uleb(uint64(offset))) }

func Store8(offset uint32) Code { return Seq(Op(0x3a, 0), uleb(uint64(offset))) }

func Call(f Func) Code { return Seq(Op(0x10), uleb(uint64(f))) }

// CallIndirect calls entry by table 0; the index is on the stack.
func CallIndirect(typ uint32) Code { return Seq(Op(0x11), uleb(uint64(typ)), Op(0)) }

func Block(body ...Code) Code { return Seq(Op(0x02, 0x40), Seq(body...), Op(0x0b)) }
func Loop(body ...Code) Code  { return Seq(Op(0x03, 0x40), Seq(body...), Op(0x0b)) }
func If(body ...Code) Code    { return Seq(Op(0x04, 0x40), Seq(body...), Op(0x0b)) }
func Br(depth uint32) Code    { return Seq(Op(0x0c), uleb(uint64(depth))) }
func BrIf(depth uint32) Code  { return Seq(Op(0x0d), uleb(uint64(depth))) }

// Forever repeats body without end.
func Forever(body ...Code) Code { return Loop(Seq(body...), Br(0)) }

// Times repeats body n times, counting in an i32 local.
func Times(local uint32, n int32, body ...Code) Code {
	return Seq(I32(n), Set(local), Loop(Seq(body...), Get(local), I32(1), Sub, Set(local), Get(local), BrIf(0)))
}

// Must traps with unreachable when the i32 on the stack is zero: the attack
// was expected to fail with an errno and did not.
func Must() Code { return Seq(EqzI32, If(Unreachable)) }

func uleb(v uint64) Code { return binary.AppendUvarint(nil, v) }

func sleb(c Code, v int64) Code {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(c, b)
		}
		c = append(c, b|0x80)
	}
}

// repeat is n times c.
func repeat(n int, c Code) Code {
	out := make(Code, 0, n*len(c))
	for range n {
		out = append(out, c...)
	}
	return out
}
