package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// A Transport says how a connector speaks with the host. The value is
// what a run's record carries as its guest transport.
type Transport string

const (
	// TransportABI is a module that imports at least one message function.
	TransportABI Transport = "abi"
	// TransportStdio is a module that speaks lines of JSON on fd 0 and fd 1.
	TransportStdio Transport = "stdio"
)

// PageBytes is the size of one page of linear memory.
const PageBytes = 65536

// maxPages is the most a 32-bit memory can have.
const maxPages = 65536

// An Import is one function that a module asks for. Both names are on the
// allow-list, so they are safe to print.
type Import struct {
	Module string
	Name   string
}

// String returns the import as module.name.
func (i Import) String() string { return i.Module + "." + i.Name }

// A Module is what the structure walk learned about untrusted bytes. It holds
// no reference to them.
type Module struct {
	Digest    string // "sha256:" and 64 hexadecimal digits, over exactly the bytes checked
	Compiled  string // the same over what is compiled of them: all sections but custom ones, and the names
	Size      int64  // bytes
	Transport Transport
	Imports   []Import // in the order of the module
	Manifest  []byte   // the section sluice.manifest; nil when absent

	MemoryMin uint32 // pages
	MemoryMax uint32 // pages; the architectural maximum when none is declared

	CodeBytes    int64 // size of the code section
	DataBytes    int64 // bytes of initial data in all segments
	CustomBytes  int64 // custom sections in all
	Functions    int   // defined ones, without imports
	Globals      int
	DataSegments int
	MaxNesting   int   // deepest block nesting of any function
	MaxBody      int64 // size of the largest function body
}

// Uses reports whether m imports any function of the named import module, such
// as abi.ModuleNetwork.
func (m Module) Uses(module string) bool {
	return slices.ContainsFunc(m.Imports, func(i Import) bool { return i.Module == module })
}

// CheckModule walks wasm once, before anything else touches it, and refuses
// with a *ModuleError what is malformed, over a limit of lim, outside of the
// accepted features, or asks for an import that is not on the list.
//
// The work is linear in len(wasm). What it allocates is bounded by the limits
// and by the bytes really present, never by a count that wasm declares. Types
// are not checked: that is the compiler's part, in its jail. Digest and Size
// are set beside an error too, unless the module is over module.bytes.
//
// CheckModule keeps no reference to wasm. It may be called concurrently.
func CheckModule(wasm []byte, lim ModuleLimits) (Module, error) {
	lim = lim.Effective()
	size := int64(len(wasm))
	if size > lim.Bytes {
		return Module{}, overLimit(RuleModuleBytes, 0, "the module", uint64(size), uint64(lim.Bytes), "bytes")
	}
	sum := sha256.Sum256(wasm)
	m := Module{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: size}

	w := moduleWalk{moduleReader: moduleReader{b: wasm, end: len(wasm)}, lim: lim, m: m}
	w.walk()
	if w.err != nil {
		return m, w.err
	}
	w.m.Compiled = "sha256:" + compiledDigest(wasm)
	return w.m, nil
}

// Section ids of a core module.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
)

// sectionRank is the order that sections must come in; custom ones are free.
var sectionRank = [sectionTag + 1]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5, sectionTag: 6, sectionGlobal: 7,
	sectionExport: 8, sectionStart: 9, sectionElement: 10, sectionDataCount: 11, sectionCode: 12, sectionData: 13,
}

var sectionNames = [sectionTag + 1]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data",
	"data count", "tag",
}

// A funcType is one entry of the type section, by where it stands.
type funcType struct {
	at     int    // position of its parameter count
	params uint16 // bounded by the hard maximum of ModuleLimits.Signature
}

// A moduleWalk is one pass over one module.
type moduleWalk struct {
	moduleReader
	lim ModuleLimits
	m   Module

	types []funcType // grows as entries are read, at most lim.Types

	importedFuncs int
	funcs         moduleReader // the type indices of defined functions, before the first
	tables        int
	tableMinimum  uint64
	memories      int
	elements      uint64 // entries of all element segments

	bodies    int
	locals    uint64
	declared  int // data segments by the data count section, -1 without
	exports   struct{ memory, start bool }
	manifests int
}

var (
	moduleHeader    = []byte("\x00asm\x01\x00\x00\x00")
	componentHeader = []byte("\x00asm\x0d\x00\x01\x00")
)

// walk reads everything; w.err holds the first fault.
func (w *moduleWalk) walk() {
	w.declared = -1
	w.m.MemoryMax = maxPages
	if !w.header() {
		return
	}
	var seen uint16
	rank, limit := 0, w.end
	for w.pos < limit && w.err == nil {
		at := w.pos
		id := w.byte()
		size := w.u32()
		if w.err != nil {
			return
		}
		if e := checkSection(id, at, seen, rank); e != nil {
			w.refuse(e)
			return
		}
		if uint64(size) > uint64(w.left()) {
			w.refuse(fault(RuleSectionSize, at, "the %s section declares %d bytes and %d remain", sectionNames[id], size, w.left()))
			return
		}
		if id != sectionCustom {
			seen |= 1 << id
			rank = sectionRank[id]
		}
		w.end = w.pos + int(size)
		w.section(id, at)
		if w.err == nil && w.pos != w.end {
			w.refuse(fault(RuleSectionSize, w.pos, "%d bytes follow the last entry of the %s section", w.left(), sectionNames[id]))
		}
		w.end = limit
	}
	if w.err == nil {
		w.finish()
	}
}

func (w *moduleWalk) header() bool {
	switch {
	case bytes.HasPrefix(w.b, moduleHeader):
		w.pos = len(moduleHeader)
		return true
	case bytes.HasPrefix(w.b, componentHeader):
		w.refuse(fault(RuleComponent, 0, "this is a component, not a core module"))
	default:
		w.refuse(fault(RuleHeader, 0, "the file does not start as a WebAssembly module of version 1"))
	}
	return false
}

// checkSection judges an id by the sections before it.
func checkSection(id byte, at int, seen uint16, rank int) *ModuleError {
	switch {
	case id == sectionTag:
		return fault(RuleFeature, at, "the tag section belongs to exceptions, which are not accepted")
	case id > sectionTag:
		return fault(RuleSectionUnknown, at, "section %d does not exist", id)
	case id == sectionCustom:
		return nil
	case seen&(1<<id) != 0:
		return fault(RuleSectionDuplicate, at, "the %s section appears twice", sectionNames[id])
	case sectionRank[id] < rank:
		return fault(RuleSectionOrder, at, "the %s section stands too late", sectionNames[id])
	}
	return nil
}

func (w *moduleWalk) section(id byte, at int) {
	switch id {
	case sectionCustom:
		w.customSection(at)
	case sectionType:
		w.typeSection()
	case sectionImport:
		w.importSection()
	case sectionFunction:
		w.functionSection()
	case sectionTable:
		w.tableSection()
	case sectionMemory:
		w.memorySection()
	case sectionGlobal:
		w.globalSection()
	case sectionExport:
		w.exportSection()
	case sectionStart:
		w.startSection()
	case sectionElement:
		w.elementSection()
	case sectionDataCount:
		w.declared = w.count(RuleDataSegments, "data segments", w.lim.DataSegments, 0)
	case sectionCode:
		w.codeSection()
	case sectionData:
		w.dataSection()
	}
}

// finish checks what only the whole module shows.
func (w *moduleWalk) finish() {
	switch {
	case w.bodies != w.m.Functions:
		w.refuse(fault(RuleCodeCount, w.pos, "%d functions are declared and %d have a body", w.m.Functions, w.bodies))
	case w.declared >= 0 && w.declared != w.m.DataSegments:
		w.refuse(fault(RuleDataCount, w.pos, "%d data segments are announced and %d exist", w.declared, w.m.DataSegments))
	case !w.exports.memory:
		w.refuse(fault(RuleExportMemory, w.pos, "the module does not export its memory as %q", exportMemory))
	case !w.exports.start:
		w.refuse(fault(RuleExportStart, w.pos, "the module does not export the function %q", exportStart))
	default:
		w.m.Transport = w.transport()
	}
}
