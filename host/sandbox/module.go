package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// A Transport says how a connector speaks with the host (G3). The value is
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
	Digest    string    // "sha256:" and 64 hexadecimal digits, over exactly the bytes checked (S138)
	Size      int64     // bytes
	Transport Transport // G3
	Imports   []Import  // in the order of the module
	Manifest  []byte    // the section sluice.manifest (G2); nil when absent

	MemoryMin uint32 // pages
	MemoryMax uint32 // pages; the architectural maximum when none is declared

	CodeBytes    int64 // size of the code section
	DataBytes    int64 // bytes of initial data in all segments
	CustomBytes  int64 // custom sections in all
	Types        int
	Functions    int // defined ones, without imports
	Globals      int
	Exports      int
	Elements     int // element segments
	DataSegments int
	MaxNesting   int   // deepest block nesting of any function
	MaxBody      int64 // size of the largest function body
	HasStart     bool  // has a start section, which runs before _start
}

// Uses reports whether m imports any function of the named import module, such
// as abi.ModuleNetwork.
func (m Module) Uses(module string) bool {
	return slices.ContainsFunc(m.Imports, func(i Import) bool { return i.Module == module })
}

// CheckModule walks wasm once, before anything else touches it, and refuses
// with a *ModuleError what is malformed, over a limit of lim, outside of the
// accepted features, or asks for an import that is not on the list (S34, G4).
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
	return w.m, nil
}
