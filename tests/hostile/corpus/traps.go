package corpus

// traps fault in every way that the engine distinguishes.
func traps() []Case {
	trap := func(name, kind string, body Code) Case {
		return Case{Name: "trap-" + name, Group: GroupTrap, Rule: "exit and traps", Want: Trapped, Trap: kind,
			Wasm: connector("", func(*Connector) Code { return body })}
	}
	indirect := func(name string, index int32) Case {
		return Case{Name: "trap-" + name, Group: GroupTrap, Rule: "exit and traps", Want: Trapped, Trap: "indirect_call",
			Wasm: func() []byte {
				b := NewBuilder()
				b.Table(4, 4)
				b.Elements(b.Func(">i", "", I32(1))) // of another type than the call
				return b.Main("", Seq(I32(index), CallIndirect(b.Type(">")))).Bytes()
			}}
	}
	float := func(bits ...byte) Code { return Seq(Op(0x44), bits) } // f64.const
	return []Case{
		trap("unreachable", "unreachable", Unreachable),
		trap("divide-by-zero", "integer_fault", Seq(I32(1), I32(0), Op(0x6d), Drop)),
		trap("remainder-by-zero", "integer_fault", Seq(I64(1), I64(0), Op(0x82), Drop)),
		trap("divide-overflow", "integer_fault", Seq(I32(-1<<31), I32(-1), Op(0x6d), Drop)),
		trap("truncate-nan", "integer_fault", Seq(float(0, 0, 0, 0, 0, 0, 0xf8, 0x7f), Op(0xaa), Drop)),
		trap("truncate-large", "integer_fault", Seq(float(0, 0, 0, 0, 0, 0, 0xf0, 0x47), Op(0xaa), Drop)),
		trap("load-beyond", "memory_out_of_bounds", Seq(I32(-4), Load(0), Drop)),
		trap("load-offset-wraps", "memory_out_of_bounds", Seq(I32(-1), Load(^uint32(0)), Drop)),
		trap("store-across-the-end", "memory_out_of_bounds", Seq(I32(2*65_536-3), I32(0), Store(0))),
		trap("fill-beyond", "memory_out_of_bounds", Seq(I32(0), I32(0), I32(-1), MemoryFill)),
		trap("copy-beyond", "memory_out_of_bounds", Seq(I32(-1), I32(-1), I32(2), MemoryCopy)),
		indirect("indirect-type", 0),
		indirect("indirect-null", 1),
		indirect("indirect-beyond", 4),
		indirect("indirect-negative", -1),
		{Name: "trap-after-start", Group: GroupTrap, Rule: "exit and traps", Want: Trapped, Trap: "unreachable",
			Wasm: connector("", func(c *Connector) Code { return Seq(c.Start(), Unreachable) })},
		{Name: "trap-data-beyond-memory", Group: GroupTrap, Rule: "launch failures", Want: LaunchFail, Or: []string{Trapped},
			Wasm: func() []byte {
				b := NewBuilder()
				b.DataAt(1<<31, []byte("x"))
				return b.Main("", nil).Bytes()
			}},
		{Name: "trap-elements-beyond-table", Group: GroupTrap, Rule: "launch failures", Want: LaunchFail,
			Or: []string{Trapped, NoDone}, Wasm: func() []byte {
				b := NewBuilder()
				b.Table(1, 1)
				f := b.Func(">", "", nil)
				b.Elements(f, f)
				return b.Main("", nil).Bytes()
			}},
		{Name: "trap-in-start-section", Group: GroupTrap, Rule: "launch failures", Want: LaunchFail, Or: []string{Trapped},
			Wasm: func() []byte {
				b := NewBuilder()
				b.AtInstantiation(b.Func(">", "", Unreachable))
				return b.Main("", nil).Bytes()
			}},
	}
}
