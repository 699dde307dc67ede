package sandbox

// What a connector exports (G1).
const (
	exportMemory = "memory"
	exportStart  = "_start"
)

const (
	kindTable  = 0x01
	kindMemory = 0x02
	kindGlobal = 0x03
)

// exportSection checks every export's kind and index and looks for the two
// that matter; the others are ignored, among them names that appear twice.
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
	w.m.Exports = n
}

// entities returns how many things of a kind the module has.
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

// startSection admits a function without parameters and results. It runs when
// the module is instantiated: in the jail, on the same budgets as _start.
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
	w.m.HasStart = true
}
