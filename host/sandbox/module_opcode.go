package sandbox

// Instructions that the walk names.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBrTable      = 0x0e
	opGlobalGet    = 0x23
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opMiscPrefix   = 0xfc
	opVectorPrefix = 0xfd
	vectorConst    = 0x0c
)

// An immediate says what follows an opcode.
type immediate uint8

const (
	immUnknown    immediate = iota // no instruction of CoreFeaturesV2
	immNone                        //
	immBlock                       // block type; opens a block
	immEnd                         // closes a block
	immIndex                       // one index
	immTwo                         // two indices
	immTable                       // vector of labels and a default label
	immMemory                      // alignment and offset
	immZero                        // one reserved zero byte
	immTwoZeros                    // two reserved zero bytes
	immIndexZero                   // an index and a reserved zero byte
	immI32                         // signed 32-bit number
	immI64                         // signed 64-bit number
	immBytes4                      //
	immBytes8                      //
	immBytes16                     //
	immLane                        // one byte: a lane
	immMemoryLane                  // alignment, offset, lane
	immSelect                      // vector of one value type
	immRef                         // a reference type
	immMisc                        // prefix 0xfc
	immVector                      // prefix 0xfd
)

// opcodes, miscOpcodes and vectorOpcodes hold every instruction of
// CoreFeaturesV2 by its immediate; what is missing is refused.
var (
	opcodes       = listOpcodes()
	miscOpcodes   = listMiscOpcodes()
	vectorOpcodes = listVectorOpcodes()
)

// span is a run of opcodes, both ends included, with one immediate.
type span struct {
	first, last int
	imm         immediate
}

func fill(spans []span) (table [256]immediate) {
	for _, s := range spans {
		for op := s.first; op <= s.last; op++ {
			table[op] = s.imm
		}
	}
	return table
}

func listOpcodes() [256]immediate {
	return fill([]span{
		{0x00, 0x01, immNone}, // unreachable, nop
		{opBlock, opIf, immBlock},
		{opElse, opElse, immNone},
		{opEnd, opEnd, immEnd},
		{0x0c, 0x0d, immIndex}, // br, br_if
		{opBrTable, opBrTable, immTable},
		{0x0f, 0x0f, immNone},  // return
		{0x10, 0x10, immIndex}, // call
		{0x11, 0x11, immTwo},   // call_indirect
		{0x1a, 0x1b, immNone},  // drop, select
		{0x1c, 0x1c, immSelect},
		{0x20, 0x26, immIndex},  // local.*, global.*, table.get, table.set
		{0x28, 0x3e, immMemory}, // loads and stores
		{0x3f, 0x40, immZero},   // memory.size, memory.grow
		{opI32Const, opI32Const, immI32},
		{opI64Const, opI64Const, immI64},
		{opF32Const, opF32Const, immBytes4},
		{opF64Const, opF64Const, immBytes8},
		{0x45, 0xc4, immNone}, // comparison, arithmetic, conversion, sign extension
		{opRefNull, opRefNull, immRef},
		{0xd1, 0xd1, immNone}, // ref.is_null
		{opRefFunc, opRefFunc, immIndex},
		{opMiscPrefix, opMiscPrefix, immMisc},
		{opVectorPrefix, opVectorPrefix, immVector},
	})
}

func listMiscOpcodes() [256]immediate {
	return fill([]span{
		{0x00, 0x07, immNone},      // saturating truncation
		{0x08, 0x08, immIndexZero}, // memory.init
		{0x09, 0x09, immIndex},     // data.drop
		{0x0a, 0x0a, immTwoZeros},  // memory.copy
		{0x0b, 0x0b, immZero},      // memory.fill
		{0x0c, 0x0c, immTwo},       // table.init
		{0x0d, 0x0d, immIndex},     // elem.drop
		{0x0e, 0x0e, immTwo},       // table.copy
		{0x0f, 0x11, immIndex},     // table.grow, table.size, table.fill
	})
}

func listVectorOpcodes() [256]immediate {
	table := fill([]span{
		{0x00, 0x0b, immMemory}, // loads, v128.store
		{vectorConst, vectorConst, immBytes16},
		{0x0d, 0x0d, immBytes16}, // i8x16.shuffle
		{0x0e, 0x14, immNone},    // swizzle, splats
		{0x15, 0x22, immLane},    // extract, replace
		{0x23, 0x53, immNone},
		{0x54, 0x5b, immMemoryLane},
		{0x5c, 0x5d, immMemory}, // v128.load32_zero, load64_zero
		{0x5e, 0xff, immNone},
	})
	for _, hole := range []byte{0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0,
		0xd2, 0xd3, 0xd4, 0xe2, 0xee} {
		table[hole] = immUnknown
	}
	return table
}
