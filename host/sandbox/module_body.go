package sandbox

// maxAlignment is the exponent of the widest natural alignment, of v128.
const maxAlignment = 4

// A codeWalk checks the instructions of one function. It counts blocks instead of stacking them, so nesting costs
// neither memory nor recursion.
type codeWalk struct {
	b       []byte // ends where the function ends
	types   uint32
	lim     *ModuleLimits
	deepest int
}

// walk reads instructions from p to the end of b, which must be the end of the function.
func (c *codeWalk) walk(p int) *ModuleError {
	b, depth := c.b, 0
	for p < len(b) {
		at := p
		imm := opcodes[b[p]]
		p++
		switch imm {
		case immNone:
			continue
		case immIndex, immI32, immI64: // one short number, the usual case
			if p < len(b) && b[p] < 0x80 {
				p++
				continue
			}
		case immMemory:
			if p+1 < len(b) && b[p] <= maxAlignment && b[p+1] < 0x80 {
				p += 2
				continue
			}
		case immEnd:
			if depth == 0 {
				return c.last(p)
			}
			depth--
			continue
		case immBlock:
			if depth++; depth > c.deepest {
				if c.deepest = depth; uint64(depth) > uint64(c.lim.Nesting) {
					return overLimit(RuleBlockNesting, at, "a function", uint64(depth), uint64(c.lim.Nesting),
						"blocks inside of each other")
				}
			}
		case immMisc:
			if imm, p = c.prefixed(&miscOpcodes, p); p < 0 {
				return lebFault(at, p)
			}
		case immVector:
			if imm, p = c.prefixed(&vectorOpcodes, p); p < 0 {
				return lebFault(at, p)
			}
		}
		next, e := c.immediate(imm, at, p)
		if e != nil {
			return e
		}
		p = next
	}
	return fault(RuleBodyEnd, p, "a function stops without its end, with %d blocks open", depth)
}

func (c *codeWalk) last(p int) *ModuleError {
	if p != len(c.b) {
		return fault(RuleBodyEnd, p, "%d bytes follow the end of a function", len(c.b)-p)
	}
	return nil
}

// prefixed reads the opcode after a prefix. It accepts only the shortest encoding: the engine reads one byte for vector
// opcodes, and would decode a longer encoding as other instructions.
func (c *codeWalk) prefixed(table *[256]immediate, p int) (immediate, int) {
	if p >= len(c.b) {
		return immUnknown, lebTruncated
	}
	op := c.b[p]
	if op < 0x80 {
		return table[op], p + 1
	}
	if p+1 >= len(c.b) {
		return immUnknown, lebTruncated
	}
	if c.b[p+1] != 1 {
		return immUnknown, p
	}
	return table[op], p + 2
}

// immediate returns the position after the immediates of an opcode that starts at at and ends at p.
func (c *codeWalk) immediate(imm immediate, at, p int) (int, *ModuleError) {
	b := c.b
	next := p
	switch imm {
	case immUnknown:
		return p, fault(RuleOpcode, at, "instruction % x is not known in WebAssembly 2.0", b[at:min(p+1, len(b))])
	case immNone:
	case immBlock:
		return c.blockType(at, p)
	case immIndex:
		_, next = readU32(b, p)
	case immTwo:
		if _, next = readU32(b, p); next >= 0 {
			_, next = readU32(b, next)
		}
	case immTable:
		return c.branchTable(at, p)
	case immI32:
		next = skipSigned(b, p, 32)
	case immI64:
		next = skipSigned(b, p, 64)
	case immBytes4:
		next = c.skip(p, 4)
	case immBytes8:
		next = c.skip(p, 8)
	case immBytes16:
		next = c.skip(p, 16)
	case immLane:
		next = c.skip(p, 1)
	case immMemory:
		return c.memory(at, p)
	case immMemoryLane:
		if next, e := c.memory(at, p); e != nil || next < len(b) {
			return next + 1, e
		}
		next = lebTruncated
	case immZero:
		return c.zeros(at, p, 1)
	case immTwoZeros:
		return c.zeros(at, p, 2)
	case immIndexZero:
		if _, next = readU32(b, p); next >= 0 {
			return c.zeros(at, next, 1)
		}
	case immSelect:
		return c.selectType(at, p)
	case immRef:
		if p < len(b) && !isRefType(b[p]) {
			return p, fault(RuleImmediate, at, "%#02x is no accepted reference type", b[p])
		}
		next = c.skip(p, 1)
	}
	if next < 0 {
		return p, lebFault(at, next)
	}
	return next, nil
}

// skip returns p+n, or a negative position if that is beyond the end.
func (c *codeWalk) skip(p, n int) int {
	if len(c.b)-p < n {
		return lebTruncated
	}
	return p + n
}

func (c *codeWalk) blockType(at, p int) (int, *ModuleError) {
	if p < len(c.b) && (c.b[p] == typeEmpty || isValueType(c.b[p])) {
		return p + 1, nil
	}
	next := skipSigned(c.b, p, 33)
	if next < 0 {
		return p, lebFault(at, next)
	}
	// Negative numbers of other forms are block types that do not exist.
	if negative := c.b[next-1]&0x40 != 0; negative {
		return p, fault(RuleBlockType, at, "a block has a type that is not accepted")
	}
	if i, n := readU32(c.b, p); n < 0 || i >= c.types {
		return p, fault(RuleBlockType, at, "a block has a type that does not exist")
	}
	return next, nil
}

func (c *codeWalk) branchTable(at, p int) (int, *ModuleError) {
	n, next := readU32(c.b, p)
	switch {
	case next < 0:
		return p, lebFault(at, next)
	case n > c.lim.BranchTable:
		return p, overLimit(RuleBranchTable, at, "a branch table", uint64(n), uint64(c.lim.BranchTable), "entries")
	case int(n) >= len(c.b)-next:
		return p, fault(RuleCount, at, "a branch table declares %d entries and %d bytes remain", n, len(c.b)-next)
	}
	for range n + 1 { // and the default
		if _, next = readU32(c.b, next); next < 0 {
			return p, lebFault(at, next)
		}
	}
	return next, nil
}

func (c *codeWalk) memory(at, p int) (int, *ModuleError) {
	align, next := readU32(c.b, p)
	if next >= 0 && align > maxAlignment {
		return p, fault(RuleImmediate, at, "a memory access is aligned to 2^%d", align)
	}
	if next >= 0 {
		_, next = readU32(c.b, next)
	}
	if next < 0 {
		return p, lebFault(at, next)
	}
	return next, nil
}

func (c *codeWalk) zeros(at, p, n int) (int, *ModuleError) {
	next := c.skip(p, n)
	if next < 0 {
		return p, lebFault(at, next)
	}
	for _, z := range c.b[p:next] {
		if z != 0 {
			return p, fault(RuleImmediate, at, "an instruction names memory %#02x; there is one", z)
		}
	}
	return next, nil
}

func (c *codeWalk) selectType(at, p int) (int, *ModuleError) {
	next := c.skip(p, 2)
	if next < 0 {
		return p, lebFault(at, next)
	}
	if c.b[p] != 1 || !isValueType(c.b[p+1]) {
		return p, fault(RuleImmediate, at, "a select has other than one accepted type")
	}
	return next, nil
}

// codeSection walks every function body.
func (w *moduleWalk) codeSection() {
	w.m.CodeBytes = int64(w.left())
	n := w.count(RuleFunctions, "function bodies", w.lim.Functions, 3)
	if w.err == nil && n != w.m.Functions {
		w.refuse(fault(RuleCodeCount, w.pos, "%d functions are declared and %d have a body", w.m.Functions, n))
	}
	if w.err != nil {
		return
	}
	indices := w.funcs // read again beside the bodies, so that nothing is kept per function
	for i := range n {
		w.functionBody(i, w.types[indices.u32()].params)
		if w.err != nil {
			return
		}
	}
	w.bodies = n
}

// functionBody checks the size and locals of one function and its code.
func (w *moduleWalk) functionBody(i int, params uint16) {
	at := w.pos
	size := w.u32()
	switch {
	case w.err != nil:
		return
	case size > w.lim.BodyBytes:
		w.refuse(bodyFault(RuleFunctionBody, at, i, uint64(size), uint64(w.lim.BodyBytes), "bytes"))
		return
	case uint64(size) > uint64(w.left()):
		w.refuse(fault(RuleTruncated, at, "function %d declares %d bytes and %d remain", i, size, w.left()))
		return
	}
	section := w.end
	w.end = w.pos + int(size)
	w.localGroups(i, params)
	if w.err == nil {
		c := codeWalk{b: w.b[:w.end], types: uint32(len(w.types)), lim: &w.lim}
		if e := c.walk(w.pos); e != nil {
			w.refuse(e)
		}
		w.m.MaxNesting = max(w.m.MaxNesting, c.deepest)
		w.m.MaxBody = max(w.m.MaxBody, int64(size))
	}
	w.pos, w.end = w.end, section
}

// localGroups adds up the declared locals. Six bytes can declare four billion locals, so the sum is limited, not the
// number of groups.
func (w *moduleWalk) localGroups(i int, params uint16) {
	at := w.pos
	sum := uint64(params)
	for range w.count(RuleFunctionLocals, "groups of locals in a function", w.lim.BodyBytes, 2) {
		sum += uint64(w.u32())
		w.valueType()
		if w.err != nil {
			return
		}
		if sum > w.lim.FunctionLocals {
			w.refuse(bodyFault(RuleFunctionLocals, at, i, sum, w.lim.FunctionLocals, "locals and parameters"))
			return
		}
	}
	if sum > w.lim.FunctionLocals {
		w.refuse(bodyFault(RuleFunctionLocals, at, i, sum, w.lim.FunctionLocals, "locals and parameters"))
		return
	}
	w.locals += sum
	if w.locals > w.lim.Locals {
		w.refuse(overLimit(RuleLocalsTotal, at, "the module", w.locals, w.lim.Locals, "locals and parameters"))
	}
}

func bodyFault(rule string, at, i int, have, limit uint64, unit string) *ModuleError {
	return fault(rule, at, "function %d has %d %s, the limit is %d", i, have, unit, limit)
}
