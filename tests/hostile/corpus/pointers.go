package corpus

import "fmt"

// pointers covers the edges of the u32 square with two pages of memory. What is out
// of range is a violation; what is in range and empty or too
// long is refused for that instead.
func pointers() []Case {
	const end = 2 * 65_536
	edges := []struct {
		ptr, length uint32
		subtype     string
	}{
		{0, end + 1, "abi_fault"},
		{1, end, "abi_fault"},
		{end, 1, "abi_fault"},
		{end - 1, 2, "abi_fault"},
		{end + 1, 0, "abi_fault"},
		{0, ^uint32(0), "abi_fault"},
		{^uint32(0), 0, "abi_fault"},
		{^uint32(0), 1, "abi_fault"},
		{^uint32(0), ^uint32(0), "abi_fault"},
		{1 << 31, 1 << 31, "abi_fault"},
		{^uint32(0) - 9, 20, "abi_fault"},
		{256, ^uint32(0) - 255, "abi_fault"},
	}
	var cases []Case
	for _, function := range []string{"emit", "progress", "log"} {
		for _, e := range edges {
			cases = append(cases, Case{
				Name: fmt.Sprintf("pointer-%s-%x-%x", function, e.ptr, e.length), Group: GroupPointer, Rule: "pointer bounds",
				Want: Violation, Subtype: e.subtype,
				Wasm: connector("", func(c *Connector) Code { return c.Session(Seq(c.Raw(function, e.ptr, e.length), Drop)) }),
			})
		}
	}
	fault := func(name, subtype string, attack func(c *Connector) Code) Case {
		return Case{Name: "pointer-" + name, Group: GroupPointer, Rule: "pointer bounds", Want: Violation, Subtype: subtype,
			Wasm: connector("", func(c *Connector) Code { return c.Session(attack(c)) })}
	}
	harmless := func(name string, attack func(c *Connector) Code) Case {
		return Case{Name: "pointer-" + name, Group: GroupPointer, Rule: "pointer bounds", Want: Succeeded,
			Wasm: connector("", func(c *Connector) Code { return c.Session(attack(c)) })}
	}
	reply := func(c *Connector, dst, size uint32) Code {
		return Seq(U32(dst), U32(size), Call(c.Import("sluice_v1", "reply")))
	}
	return append(cases,
		fault("progress-empty-at-end", "frame_invalid_json",
			func(c *Connector) Code { return Seq(c.Raw("progress", end, 0), Drop) }),
		fault("emit-empty-at-end", "frame_malformed", func(c *Connector) Code { return Seq(c.Raw("emit", end, 0), Drop) }),
		fault("start-beyond", "abi_fault", func(c *Connector) Code { return Seq(c.Raw("start", end, 1), Drop) }),
		fault("reply-beyond", "abi_fault", func(c *Connector) Code { return Seq(reply(c, end, 1<<20), Drop) }),
		fault("reply-wraps", "abi_fault", func(c *Connector) Code { return Seq(reply(c, ^uint32(0), ^uint32(0)), Drop) }),
		harmless("reply-nothing-at-end",
			func(c *Connector) Code { return Seq(reply(c, end, 0), EqzI32, EqzI32, If(Unreachable)) }),
		harmless("reply-over-own-request", func(c *Connector) Code {
			s := c.Text(`{"message":"x"}`)
			progress := Seq(c.Raw("progress", s.Ptr, s.Len), I64(0), Op(0x52), If(Unreachable))
			return Seq(progress, reply(c, s.Ptr, 4), Drop, reply(c, 65_536, 65_536), Drop)
		}),
		harmless("growth-between-calls", func(c *Connector) Code {
			// a request in a page that did not exist at the call before
			line := c.Text(`{"message":"x"}`)
			return Seq(I32(1), MemoryGrow, Drop, U32(end), U32(line.Ptr), U32(line.Len), MemoryCopy,
				c.Raw("progress", end, line.Len), I64(0), Op(0x52), If(Unreachable))
		}),
		harmless("unknown-handle", func(c *Connector) Code {
			read := c.Import("sluice_v1", "read")
			return Seq(I32(-1), I32(0), I32(16), Call(read), I64(0), Op(0x53), EqzI32, If(Unreachable))
		}),
	)
}
