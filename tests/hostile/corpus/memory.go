package corpus

import "strings"

// memoryBombs eat what a worker has: linear memory, tables, stack.
func memoryBombs() []Case {
	stack := func(name string, wasm func() []byte) Case {
		return Case{Name: "memory-" + name, Group: GroupMemory, Rule: "stack limit", Wasm: wasm, Want: Trapped,
			Trap: "stack_overflow",
			Or:   []string{MemoryLimit}}
	}
	return []Case{
		{Name: "memory-grow-and-touch", Group: GroupMemory, Rule: "memory limit", Want: Trapped, Trap: "unreachable",
			Or: []string{MemoryLimit},
			Wasm: connector("i", func(*Connector) Code {
				// until growth fails: grow a page and write to it
				return Forever(I32(1), MemoryGrow, Set(0), Get(0), I32(-1), NeI32, EqzI32, If(Unreachable),
					Get(0), I32(16), Op(0x74), I32(1), Store(0))
			})},
		{Name: "memory-grow-at-once", Group: GroupMemory, Rule: "memory limit", Want: Trapped, Trap: "unreachable",
			Or:      []string{MemoryLimit},
			Budgets: Budgets{Memory: 64 << 20},
			Wasm: connector("", func(*Connector) Code {
				return Seq(I32(60_000), MemoryGrow, I32(-1), NeI32, EqzI32, If(Unreachable), I32(0), I32(1),
					U32(60_000*65_536), MemoryFill)
			})},
		{Name: "memory-minimum-4g", Group: GroupMemory, Rule: "memory limit", Want: LaunchFail,
			Or: []string{"module_invalid", "module_compile_failed", MemoryLimit},
			Wasm: func() []byte {
				b := NewBuilder()
				b.MemoryMin = 65_536
				return b.Main("", nil).Bytes()
			}},
		{Name: "memory-maximum-4g", Group: GroupMemory, Rule: "memory limit", Want: NoDone,
			Wasm: func() []byte { // reserving is no using
				b := NewBuilder()
				b.MemoryMax = 65_536
				return b.Main("", nil).Bytes()
			}},
		{Name: "memory-table-grow", Group: GroupMemory, Rule: "table limits", Want: MemoryLimit,
			Or:      []string{Trapped, TimedOut},
			Budgets: Budgets{Compute: 10 * short},
			Wasm: func() []byte {
				b := NewBuilder()
				b.Table(1, 0)
				grow := Seq(Op(0xd0, 0x70), I32(1<<20), Op(0xfc, 0x0f, 0))
				return b.Main("", Forever(grow, I32(-1), NeI32, EqzI32, If(Unreachable))).Bytes()
			}},
		{Name: "memory-four-tables", Group: GroupMemory, Rule: "table limits", Want: MemoryLimit,
			Or:      []string{Trapped, TimedOut},
			Budgets: Budgets{Compute: 10 * short},
			Wasm: func() []byte {
				b := NewBuilder()
				var grow Code
				for i := range byte(4) {
					b.Table(25_000, 0)
					grow = Seq(grow, Op(0xd0, 0x70), I32(1<<19), Op(0xfc, 0x0f, i), Drop)
				}
				return b.Main("", Forever(grow)).Bytes()
			}},
		stack("recursion", func() []byte {
			b := NewBuilder()
			b.Func(">", "", Call(0))
			return b.Main("", Call(0)).Bytes()
		}),
		stack("recursion-wide-frames", func() []byte {
			b := NewBuilder()
			b.Func(">", strings.Repeat("I", 4_000), Seq(Call(0), repeat(100, Seq(Get(0), Drop))))
			return b.Main("", Call(0)).Bytes()
		}),
		stack("recursion-many-results", func() []byte {
			b := NewBuilder()
			wide := strings.Repeat("I", 500)
			b.Func(">"+wide, "", Call(0))
			return b.Main("", Seq(Call(0), repeat(500, Drop))).Bytes()
		}),
		stack("recursion-indirect", func() []byte {
			b := NewBuilder()
			b.Table(1, 1)
			b.Elements(b.Func(">", "", Seq(I32(0), CallIndirect(b.Type(">")))))
			return b.Main("", Call(0)).Bytes()
		}),
		stack("recursion-in-start-section", func() []byte {
			b := NewBuilder()
			b.AtInstantiation(b.Func(">", "", Call(0)))
			return b.Main("", nil).Bytes()
		}).or(LaunchFail),
	}
}

// or adds endings that are as good.
func (c Case) or(reasons ...string) Case {
	c.Or = append(c.Or[:len(c.Or):len(c.Or)], reasons...)
	return c
}
