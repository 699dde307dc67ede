package sandbox

import "math"

// Encodings of types.
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeF32       = 0x7d
	typeF64       = 0x7c
	typeV128      = 0x7b
	typeFuncref   = 0x70
	typeExternref = 0x6f
	typeEmpty     = 0x40 // of a block without results
	typeFunction  = 0x60
)

func isValueType(c byte) bool {
	return c >= typeV128 && c <= typeI32 || isRefType(c)
}

func isRefType(c byte) bool { return c == typeFuncref || c == typeExternref }

// valueType reads one value type.
func (w *moduleWalk) valueType() {
	at := w.pos
	if c := w.byte(); w.err == nil && !isValueType(c) {
		w.refuse(fault(RuleValueType, at, "%#02x is no accepted value type", c))
	}
}

func (w *moduleWalk) refType() {
	at := w.pos
	if c := w.byte(); w.err == nil && !isRefType(c) {
		w.refuse(fault(RuleValueType, at, "%#02x is no accepted reference type", c))
	}
}

// typeSection records the position of each type.
func (w *moduleWalk) typeSection() {
	n := w.count(RuleTypes, "types", w.lim.Types, 3)
	for range n {
		at := w.pos
		if form := w.byte(); w.err == nil && form != typeFunction {
			w.refuse(fault(RuleTypeForm, at, "type %d is no function type", len(w.types)))
		}
		t := funcType{at: w.pos}
		t.params = w.valueTypes("parameters")
		w.valueTypes("results")
		if w.err != nil {
			return
		}
		w.types = append(w.types, t)
	}
}

// valueTypes reads a list of value types and returns its length.
func (w *moduleWalk) valueTypes(what string) uint16 {
	at := w.pos
	n := w.u32()
	if n > w.lim.Signature || n > math.MaxUint16 {
		w.refuse(overLimit(RuleSignature, at, "a type", uint64(n), uint64(w.lim.Signature), what))
		return 0
	}
	for range n {
		if w.err != nil {
			return 0
		}
		w.valueType()
	}
	return uint16(n)
}

// typeIndex reads an index of a type.
func (w *moduleWalk) typeIndex() int {
	at := w.pos
	i := w.u32()
	if w.err == nil && uint64(i) >= uint64(len(w.types)) {
		w.refuse(fault(RuleTypeIndex, at, "type %d does not exist", i))
		return 0
	}
	return int(i)
}

// isType reports whether type i has the signature sig, written as in
// abi.Function.Signature: parameters, '>', results.
func (w *moduleWalk) isType(i int, sig string) bool {
	r := moduleReader{b: w.b, pos: w.types[i].at, end: len(w.b)}
	for n := r.u32(); n > 0; n-- {
		if sig == "" || sig[0] == '>' || letterOf(r.byte()) != sig[0] {
			return false
		}
		sig = sig[1:]
	}
	if sig == "" || sig[0] != '>' {
		return false
	}
	sig = sig[1:]
	for n := r.u32(); n > 0; n-- {
		if sig == "" || letterOf(r.byte()) != sig[0] {
			return false
		}
		sig = sig[1:]
	}
	return sig == ""
}

func letterOf(valueType byte) byte {
	switch valueType {
	case typeI32:
		return 'i'
	case typeI64:
		return 'I'
	}
	return '?'
}

// functionSection checks the type indices and records where they start.
func (w *moduleWalk) functionSection() {
	room := uint64(w.lim.Functions) - min(uint64(w.lim.Functions), uint64(w.importedFuncs))
	n := w.count(RuleFunctions, "functions besides imports", uint32(room), 1)
	w.funcs = w.moduleReader
	for range n {
		w.typeIndex()
		if w.err != nil {
			return
		}
	}
	w.m.Functions = n
}

// functionType returns the type index of a defined function. It reads the function section again from its start;
// callers do so once or twice per module.
func (w *moduleWalk) functionType(defined int) int {
	r := w.funcs
	for range defined {
		r.u32()
	}
	return int(r.u32())
}

// What a connector exports.
const (
	exportMemory = "memory"
	exportStart  = "_start"
)

const (
	kindTable  = 0x01
	kindMemory = 0x02
	kindGlobal = 0x03
)

// exportSection checks the kind and index of every export, and the two that matter completely. Duplicate names among
// the others are ignored.
func (w *moduleWalk) exportSection() {
	n := w.count(RuleExports, "exports", w.lim.Exports, 3)
	for range n {
		at := w.pos
		name := w.name()
		kind := w.byte()
		index := w.u32()
		if w.err != nil {
			return
		}
		if kind > kindGlobal {
			w.refuse(fault(RuleExportKind, at, "export %s is a %s", quoted(name), kindName(kind)))
			return
		}
		if uint64(index) >= uint64(w.entities(kind)) {
			w.refuse(fault(RuleExportIndex, at, "export %s is %s %d, which does not exist", quoted(name), kindName(kind), index))
			return
		}
		switch string(name) {
		case exportMemory:
			w.memoryExport(at, kind)
		case exportStart:
			w.startExport(at, kind, int(index))
		}
	}
}

// entities returns how many functions, tables, memories or globals the module has.
func (w *moduleWalk) entities(kind byte) int {
	switch kind {
	case kindFunction:
		return w.importedFuncs + w.m.Functions
	case kindTable:
		return w.tables
	case kindMemory:
		return w.memories
	case kindGlobal:
		return w.m.Globals
	}
	return 0
}

func (w *moduleWalk) memoryExport(at int, kind byte) {
	switch {
	case w.exports.memory:
		w.refuse(fault(RuleExportDuplicate, at, "%q is exported twice", exportMemory))
	case kind != kindMemory:
		w.refuse(fault(RuleExportMemory, at, "export %q is a %s", exportMemory, kindName(kind)))
	}
	w.exports.memory = true
}

func (w *moduleWalk) startExport(at int, kind byte, index int) {
	switch {
	case w.exports.start:
		w.refuse(fault(RuleExportDuplicate, at, "%q is exported twice", exportStart))
	case kind != kindFunction || index < w.importedFuncs:
		w.refuse(fault(RuleExportStart, at, "export %q is no function of the module", exportStart))
	case !w.isType(w.functionType(index-w.importedFuncs), ">"):
		w.refuse(fault(RuleExportStartType, at, "%q takes parameters or returns results", exportStart))
	}
	w.exports.start = true
}

// startSection accepts a function without parameters and results. It runs when the module is instantiated: in the jail,
// within the same limits as _start.
func (w *moduleWalk) startSection() {
	at := w.pos
	index := int(w.u32())
	switch {
	case w.err != nil:
		return
	case index >= w.entities(kindFunction):
		w.refuse(fault(RuleStartFunction, at, "start function %d does not exist", index))
	case index >= w.importedFuncs && !w.isType(w.functionType(index-w.importedFuncs), ">"):
		w.refuse(fault(RuleStartFunction, at, "the start function takes parameters or returns results"))
	case index < w.importedFuncs:
		w.refuse(fault(RuleStartFunction, at, "the start function is an import"))
	}
}
