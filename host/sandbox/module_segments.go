package sandbox

// Flags of an element segment (values 0 to 7).
const (
	elementPassive  = 0x01 // or declarative, with elementExplicit
	elementExplicit = 0x02 // names its table, or is declarative
	elementExprs    = 0x04 // entries are expressions, not function indices
)

// elementSection reads segments in each of their eight forms.
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
	w.m.Elements = n
}

// elementTarget reads where a segment goes and what it holds.
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
