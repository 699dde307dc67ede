package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// A Transport says how a connector communicates with the host. A run's record carries it as the guest transport.
type Transport string

const (
	// TransportABI is a module that imports at least one message function.
	TransportABI Transport = "abi"
	// TransportStdio is a module that speaks lines of JSON on fd 0 and fd 1.
	TransportStdio Transport = "stdio"
)

// PageBytes is the size of one page of linear memory.
const PageBytes = 65536

// maxPages is the maximum of a 32-bit memory.
const maxPages = 65536

// An Import is a function that a module imports. Both names are on the allow-list, so they are safe to print.
type Import struct {
	Module string
	Name   string
}

// String returns the import as module.name.
func (i Import) String() string { return i.Module + "." + i.Name }

// A Module is what CheckModule found out about untrusted bytes. It does not refer to them.
type Module struct {
	Digest    string // "sha256:" and 64 hexadecimal digits, over exactly the bytes checked
	Compiled  string // the same over the sections that are compiled: all but custom ones, and the names
	Size      int64  // bytes
	Transport Transport
	Imports   []Import // in the order of the module
	Manifest  []byte   // content of the section sluice.manifest; nil if absent

	MemoryMin uint32 // pages
	MemoryMax uint32 // pages; 65,536 if none is declared

	CodeBytes    int64 // size of the code section
	DataBytes    int64 // bytes of initial data in all segments
	CustomBytes  int64 // all custom sections together
	Functions    int   // defined, not imported
	Globals      int
	DataSegments int
	MaxNesting   int   // deepest block nesting of any function
	MaxBody      int64 // size of the largest function body
}

// Uses reports whether m imports a function of the import module, such as abi.ModuleNetwork.
func (m Module) Uses(module string) bool {
	return slices.ContainsFunc(m.Imports, func(i Import) bool { return i.Module == module })
}

// CheckModule reads wasm once, before anything else does. It returns a *ModuleError if wasm is malformed, exceeds a
// limit of lim, uses a feature that is not accepted, or imports something that is not on the allow-list. It does not
// check types: the compiler does, in its jail.
//
// The work is linear in len(wasm). Allocations are bounded by the limits and by the bytes present, never by a count
// that wasm declares. Digest and Size are set even with an error, unless the module exceeds module.bytes.
//
// CheckModule keeps no reference to wasm. It is safe for concurrent use.
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

// sectionRank is the required order of sections; custom ones may be anywhere.
var sectionRank = [sectionTag + 1]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5,
	sectionTag: 6, sectionGlobal: 7, sectionExport: 8, sectionStart: 9, sectionElement: 10, sectionDataCount: 11,
	sectionCode: 12, sectionData: 13,
}

var sectionNames = [sectionTag + 1]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data",
	"data count", "tag",
}

// A funcType locates one entry of the type section.
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
	funcs         moduleReader // positioned at the type index of the first defined function
	tables        int
	tableMinimum  uint64
	memories      int
	elements      uint64 // entries of all element segments

	bodies    int
	locals    uint64
	declared  int // number of data segments that the data count section declares; -1 if absent
	exports   struct{ memory, start bool }
	manifests int
}

var (
	moduleHeader    = []byte("\x00asm\x01\x00\x00\x00")
	componentHeader = []byte("\x00asm\x0d\x00\x01\x00")
)

// walk reads the whole module; w.err is the first fault.
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
			w.refuse(fault(RuleSectionSize, at, "the %s section declares %d bytes and %d remain",
				sectionNames[id], size, w.left()))
			return
		}
		if id != sectionCustom {
			seen |= 1 << id
			rank = sectionRank[id]
		}
		w.end = w.pos + int(size)
		w.section(id, at)
		if w.err == nil && w.pos != w.end {
			w.refuse(fault(RuleSectionSize, w.pos, "%d bytes follow the last entry of the %s section",
				w.left(), sectionNames[id]))
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

// checkSection refuses an id that does not exist or may not follow the sections seen before.
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

// finish checks what is known only after the last section.
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
