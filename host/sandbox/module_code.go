package sandbox

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

// localGroups adds up declared locals. A group takes two bytes and can stand
// for four thousand million locals, so the sum is what counts (S35).
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
