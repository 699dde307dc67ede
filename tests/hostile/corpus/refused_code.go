package corpus

// withCode is the smallest connector with other function bodies, each of type
// 0; a body is locals and instructions.
func withCode(bodies ...Code) func() []byte {
	var entries []Code
	for _, b := range bodies {
		entries = append(entries, sized(b))
	}
	return altered(map[byte]Code{3: equal(len(bodies), Op(0)), 10: vector(entries...)})
}

// refusedCode breaks function bodies: bombs for compilers, and instructions
// outside of the accepted features.
func refusedCode() []Case {
	nested := func(depth int, open Code) Code {
		return Seq(Op(0), repeat(depth, open), repeat(depth+1, Op(0x0b)))
	}
	locals50k := Seq(Op(1), uleb(50_000), Op(0x7f, 0x0b))
	return []Case{
		refused("locals-4g", "function_locals", func() []byte { return fourGigaLocals }),
		refused("locals-10m", "function_locals", withCode(Seq(Op(1), uleb(10_000_000), Op(0x7f, 0x0b)))),
		refused("locals-wrapped", "function_locals", withCode(Seq(Op(2), count4G, Op(0x7f), uleb(2), Op(0x7f, 0x0b)))),
		refused("locals-groups", "function_locals", withCode(Seq(equal(50_001, Op(1, 0x7e)), Op(0x0b)))),
		refused("locals-groups-4g", "function_locals", withCode(Seq(count4G, Op(0x0b)))),
		refused("locals-in-all", "locals_total", withCode(replicate(41, locals50k)...)),
		refused("local-type", "value_type", withCode(Op(1, 1, 0x40, 0x0b))),

		refused("body-1m", "function_body", withCode(Seq(Op(0), repeat(1<<20, Op(0x01)), Op(0x0b)))),
		refused("body-beyond-section", "truncated", altered(map[byte]Code{10: Seq(Op(1), uleb(1000), Op(0x0b))})),
		refused("nesting-40000", "block_nesting", withCode(nested(40_000, Op(0x02, 0x40)))),
		refused("nesting-loops", "block_nesting", withCode(nested(4_097, Op(0x03, 0x40)))),
		refused("nesting-ifs", "block_nesting", withCode(nested(4_097, Op(0x41, 0, 0x04, 0x40)))),
		refused("nesting-never-closed", "block_nesting", withCode(Seq(Op(0), repeat(300_000, Op(0x02, 0x40))))),
		refused("branch-table-4g", "branch_table", withCode(Seq(Op(0, 0x41, 0, 0x0e), count4G, Op(0x0b)))),
		refused("branch-table-65521", "branch_table", withCode(Seq(Op(0, 0x41, 0, 0x0e), equal(65_521, Op(0)), Op(0, 0x0b)))),
		refused("branch-table-beyond-body", "count", withCode(Seq(Op(0, 0x41, 0, 0x0e), uleb(60_000), Op(0, 0x0b)))),
		refused("block-type", "block_type", withCode(Op(0, 0x02, 0x05, 0x0b, 0x0b))),

		refused("tail-call", "opcode", withCode(Op(0, 0x12, 0, 0x0b))),
		refused("exceptions", "opcode", withCode(Op(0, 0x06, 0x40, 0x0b, 0x0b))),
		refused("throw", "opcode", withCode(Op(0, 0x08, 0, 0x0b))),
		refused("atomics", "opcode", withCode(Op(0, 0xfe, 0x03, 0x00, 0x0b))),
		refused("garbage-collection", "opcode", withCode(Op(0, 0xfb, 0x00, 0x00, 0x0b))),
		refused("call-ref", "opcode", withCode(Op(0, 0x14, 0, 0x0b))),
		refused("relaxed-simd", "opcode", withCode(Op(0, 0xfd, 0x80, 0x02, 0x0b))),
		refused("simd-two-readings", "opcode", withCode(Op(0, 0xfd, 0x8b, 0x00, 0x00, 0x00, 0x0b))),
		refused("misc-unknown", "opcode", withCode(Op(0, 0xfc, 0x7f, 0x0b))),
		refused("memory-1", "immediate", withCode(Op(0, 0x3f, 1, 0x1a, 0x0b))),
		refused("alignment", "immediate", withCode(Op(0, 0x41, 0, 0x28, 0x20, 0, 0x1a, 0x0b))),
		refused("constant-overflow", "leb128", withCode(Op(0, 0x41, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x1a, 0x0b))),
		refused("constant-cut", "truncated", withCode(Op(0, 0x44, 0, 0, 0))),
		refused("code-after-end", "body_end", withCode(Op(0, 0x0b, 0x0b))),
		refused("code-without-end", "body_end", withCode(Op(0, 0x01, 0x01))),
	}
}

// fourGigaLocals is 30 bytes that end an engine with a 32 GB allocation.
var fourGigaLocals = Seq(Header,
	Section(1, Op(1, 0x60, 0, 0)), Section(3, Op(1, 0)),
	Section(10, Op(1, 8, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b)))

func replicate(n int, c Code) []Code {
	out := make([]Code, n)
	for i := range out {
		out[i] = c
	}
	return out
}
