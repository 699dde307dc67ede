package corpus

import "strings"

// compileBombs pass every structural limit and are as heavy as those allow.
// They may compile, and then end without a DONE, or die in the compile worker.
func compileBombs() []Case {
	bomb := func(name string, wasm func() []byte) Case {
		return Case{Name: "compile-" + name, Group: GroupCompile, Rule: "compilation limits", Wasm: wasm, Want: NoDone,
			Or: []string{"module_compile_timeout", "module_compile_memory", "module_compile_failed"}}
	}
	return []Case{
		bomb("functions-90000", func() []byte {
			b := NewBuilder()
			for range 90_000 {
				b.Func(">", "", nil)
			}
			return b.Main("", nil).Bytes()
		}),
		bomb("locals-2m", func() []byte {
			b := NewBuilder()
			for range 39 {
				b.RawFunc(">", Seq(Op(1), uleb(50_000), Op(0x7f, 0x0b)))
			}
			return b.Main("", nil).Bytes()
		}),
		bomb("nesting-4096", func() []byte {
			b := NewBuilder()
			for range 20 {
				b.Func(">", "", Seq(repeat(4_096, Op(0x02, 0x40)), repeat(4_096, Op(0x0b))))
			}
			return b.Main("", nil).Bytes()
		}),
		bomb("nested-loops-live-locals", func() []byte {
			b := NewBuilder()
			touch := Seq(Get(0), I32(1), Add, Set(0))
			b.Func(">", strings.Repeat("i", 200), Seq(repeat(2_000, Seq(Op(0x03, 0x40), touch)), repeat(2_000, Op(0x0b))))
			return b.Main("", nil).Bytes()
		}),
		bomb("wide-signatures", func() []byte {
			b := NewBuilder()
			wide := strings.Repeat("I", 1_000)
			for range 500 {
				b.Func(wide+">"+wide, "", Unreachable)
			}
			return b.Main("", nil).Bytes()
		}),
		bomb("branch-tables", func() []byte {
			b := NewBuilder()
			for range 10 {
				b.Func(">", "", Block(I32(0), Op(0x0e), equal(65_520, Op(0)), Op(0)))
			}
			return b.Main("", nil).Bytes()
		}),
		bomb("body-1m", func() []byte {
			b := NewBuilder()
			b.Func(">i", "", Seq(I32(1), repeat(300_000, Seq(I32(3), Add))))
			return b.Main("", nil).Bytes()
		}),
		bomb("deep-operand-stack", func() []byte {
			b := NewBuilder()
			b.Func(">", "", Seq(repeat(200_000, I32(1)), repeat(200_000, Drop)))
			return b.Main("", nil).Bytes()
		}),
		bomb("data-segments", func() []byte {
			b := NewBuilder()
			for i := range uint32(90_000) {
				b.DataAt(i, []byte{1})
			}
			b.MemoryMin = 3
			return b.Main("", nil).Bytes()
		}),
	}
}
