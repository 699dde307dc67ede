package sandbox

// Flags of memory and table limits.
const (
	limitsMaximum = 0x01
	limitsShared  = 0x02
	limits64      = 0x04
	limitsKnown   = limitsMaximum | limitsShared | limits64
)

// memorySection accepts one 32-bit memory that is not shared.
func (w *moduleWalk) memorySection() {
	n := w.count(RuleMemories, "memories", w.lim.Memories, 2)
	for range n {
		at := w.pos
		flags := w.byte()
		switch {
		case w.err != nil:
			return
		case flags&^limitsKnown != 0:
			w.refuse(fault(RuleMemoryLimits, at, "flags %#02x of a memory are unknown", flags))
			return
		case flags&limits64 != 0:
			w.refuse(fault(RuleMemory64, at, "the memory has 64-bit addresses"))
			return
		case flags&limitsShared != 0:
			w.refuse(fault(RuleMemoryShared, at, "the memory is shared between threads"))
			return
		}
		w.m.MemoryMin = w.u32()
		if flags&limitsMaximum != 0 {
			w.m.MemoryMax = w.u32()
		}
		if w.err == nil && (w.m.MemoryMax > maxPages || w.m.MemoryMin > w.m.MemoryMax) {
			w.refuse(fault(RuleMemoryLimits, at, "the memory has %d to %d pages; at most %d exist", w.m.MemoryMin,
				w.m.MemoryMax, maxPages))
		}
	}
	w.memories = n
}

// tableSection limits the initial size of tables. A maximum is not required: the memory limit of the worker stops
// growth.
func (w *moduleWalk) tableSection() {
	n := w.count(RuleTables, "tables", w.lim.Tables, 3)
	for range n {
		at := w.pos
		kind, flags := w.byte(), w.byte()
		switch {
		case w.err != nil:
			return
		case !isRefType(kind):
			w.refuse(fault(RuleTableType, at, "%#02x is no accepted type of table", kind))
			return
		case flags&^limitsMaximum != 0:
			w.refuse(fault(RuleTableLimits, at, "flags %#02x of a table are not accepted", flags))
			return
		}
		least, most := w.u32(), ^uint32(0)
		if flags&limitsMaximum != 0 {
			most = w.u32()
		}
		if w.err == nil && least > most {
			w.refuse(fault(RuleTableLimits, at, "a table has %d entries at least and %d at most", least, most))
		}
		w.tableMinimum += uint64(least)
		if w.err == nil && w.tableMinimum > w.lim.TableMinimum {
			w.refuse(overLimit(RuleTableMinimum, at, "the module", w.tableMinimum, w.lim.TableMinimum, "initial table entries"))
		}
	}
	w.tables = n
}

func (w *moduleWalk) globalSection() {
	n := w.count(RuleGlobals, "globals", w.lim.Globals, 4)
	for range n {
		w.valueType()
		at := w.pos
		if mutable := w.byte(); w.err == nil && mutable > 1 {
			w.refuse(fault(RuleGlobalType, at, "mutability %#02x of a global is not accepted", mutable))
		}
		w.constExpr()
		if w.err != nil {
			return
		}
	}
	w.m.Globals = n
}

// constExpr reads one constant instruction and its end.
func (w *moduleWalk) constExpr() {
	at := w.pos
	switch op := w.byte(); op {
	case opI32Const:
		w.signed(32)
	case opI64Const:
		w.signed(64)
	case opF32Const:
		w.bytes(4)
	case opF64Const:
		w.bytes(8)
	case opGlobalGet, opRefFunc:
		w.u32()
	case opRefNull:
		w.refType()
	case opVectorPrefix:
		if sub := w.byte(); w.err == nil && sub != vectorConst {
			w.refuse(fault(RuleConstExpr, at, "vector instruction %#02x is not constant", sub))
		}
		w.bytes(16)
	default:
		w.refuse(fault(RuleConstExpr, at, "instruction %#02x is not constant", op))
	}
	at = w.pos
	if end := w.byte(); w.err == nil && end != opEnd {
		w.refuse(fault(RuleConstExpr, at, "a constant expression has more than one instruction"))
	}
}

// Flags of an element segment (values 0 to 7).
const (
	elementPassive  = 0x01 // or declarative, with elementExplicit
	elementExplicit = 0x02 // names its table, or is declarative
	elementExprs    = 0x04 // entries are expressions, not function indices
)

// elementSection reads segments of all eight forms.
func (w *moduleWalk) elementSection() {
	n := w.count(RuleElementSegments, "element segments", w.lim.ElementSegments, 3)
	for range n {
		at := w.pos
		flags := w.u32()
		if w.err == nil && flags > elementPassive|elementExplicit|elementExprs {
			w.refuse(fault(RuleElementKind, at, "element segments of kind %d do not exist", flags))
		}
		w.elementTarget(flags)
		w.elementEntries(flags)
		if w.err != nil {
			return
		}
	}
}

// elementTarget reads the table, offset and kind of a segment.
func (w *moduleWalk) elementTarget(flags uint32) {
	if flags&elementPassive == 0 {
		if flags&elementExplicit != 0 {
			w.u32() // table
		}
		w.constExpr()
	}
	if flags&(elementPassive|elementExplicit) == 0 {
		return
	}
	if flags&elementExprs != 0 {
		w.refType()
		return
	}
	at := w.pos
	if kind := w.byte(); w.err == nil && kind != 0 {
		w.refuse(fault(RuleElementKind, at, "element kind %#02x does not exist", kind))
	}
}

func (w *moduleWalk) elementEntries(flags uint32) {
	at, size := w.pos, 1
	if flags&elementExprs != 0 {
		size = 3
	}
	n := w.count(RuleElementEntries, "entries in an element segment", w.lim.ElementEntries, size)
	w.elements += uint64(n)
	if w.elements > uint64(w.lim.ElementEntries) {
		w.refuse(overLimit(RuleElementEntries, at, "the module", w.elements, uint64(w.lim.ElementEntries), "element entries"))
	}
	for range n {
		if w.err != nil {
			return
		}
		if flags&elementExprs != 0 {
			w.constExpr()
		} else {
			w.u32()
		}
	}
}

// Kinds of a data segment.
const (
	dataActive = iota
	dataPassive
	dataExplicit // names its memory, which must be 0
)

func (w *moduleWalk) dataSection() {
	n := w.count(RuleDataSegments, "data segments", w.lim.DataSegments, 2)
	for range n {
		at := w.pos
		kind := w.u32()
		if w.err == nil && kind > dataExplicit {
			w.refuse(fault(RuleDataKind, at, "data segments of kind %d do not exist", kind))
		}
		if kind == dataExplicit {
			if memory := w.u32(); w.err == nil && memory != 0 {
				w.refuse(fault(RuleDataKind, at, "a data segment goes to memory %d", memory))
			}
		}
		if kind != dataPassive {
			w.constExpr()
		}
		w.m.DataBytes += int64(len(w.bytes(w.u32())))
		if w.err != nil {
			return
		}
	}
	w.m.DataSegments = n
}
