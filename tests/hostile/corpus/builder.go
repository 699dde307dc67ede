package corpus

import (
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// A Func is the index of a function: imports first, then defined ones.
type Func uint32

// A Span is where Data put bytes in memory.
type Span struct{ Ptr, Len uint32 }

// A Builder writes a module section by section. All imports come before the first
// function, as in the index space; it panics when a case breaks that. Signatures are
// written as in abi.Function.Signature, with f, F and v for f32, f64 and v128 in
// addition to i and I.
type Builder struct {
	MemoryMin uint32 // pages
	MemoryMax uint32 // pages; 0 declares none
	Manifest  string // empty embeds none

	types     []string
	imports   []Code
	imported  map[string]Func
	functions []definition
	tables    []Code
	globals   []Code
	exports   []Code
	start     Code
	elements  []Code
	data      []Code
	next      uint32 // first free byte of memory
}

type definition struct {
	typ  uint32
	body Code
}

// firstData leaves the first bytes of memory to iovecs and results.
const firstData = 256

// NewBuilder returns a connector without code: two pages of memory, exported,
// and the common manifest.
func NewBuilder() *Builder {
	b := &Builder{MemoryMin: 2, Manifest: Manifest, imported: map[string]Func{}, next: firstData}
	b.Export("memory", 2, 0)
	return b
}

// Type returns the index of a signature.
func (b *Builder) Type(signature string) uint32 {
	for i, t := range b.types {
		if t == signature {
			return uint32(i)
		}
	}
	b.types = append(b.types, signature)
	return uint32(len(b.types) - 1)
}

// Import returns a function of one of the sluice modules, with the type that the
// contract gives it.
func (b *Builder) Import(module, name string) Func {
	for _, f := range abi.Functions {
		if f.Module == module && f.Name == name {
			return b.ImportAs(module, name, f.Signature())
		}
	}
	panic("corpus: no function " + module + "." + name)
}

// WASI returns a function of WASI preview 1.
func (b *Builder) WASI(name, signature string) Func {
	return b.ImportAs(abi.ModuleWASI, name, signature)
}

// ImportAs returns any function, imported once.
func (b *Builder) ImportAs(module, name, signature string) Func {
	key := module + "." + name
	if f, ok := b.imported[key]; ok {
		return f
	}
	if len(b.functions) > 0 {
		panic("corpus: import " + key + " comes after a function")
	}
	f := Func(len(b.imports))
	b.imported[key] = f
	b.imports = append(b.imports, Seq(sized(Code(module)), sized(Code(name)), Op(0), uleb(uint64(b.Type(signature)))))
	return f
}

// Func adds a function. Locals are letters of types, after the parameters.
func (b *Builder) Func(signature, locals string, body Code) Func {
	var groups []Code
	for _, l := range locals {
		groups = append(groups, Op(1, valueType(l)))
	}
	return b.RawFunc(signature, Seq(vector(groups...), body, Op(0x0b)))
}

// RawFunc adds a function by the bytes of its body, locals included.
func (b *Builder) RawFunc(signature string, body Code) Func {
	b.functions = append(b.functions, definition{b.Type(signature), body})
	return Func(len(b.imports) + len(b.functions) - 1)
}

// Main adds the function exported as _start.
func (b *Builder) Main(locals string, body Code) *Builder {
	b.Export("_start", 0, uint32(b.Func(">", locals, body)))
	return b
}

// Export names a function (0), table (1), memory (2) or global (3).
func (b *Builder) Export(name string, kind byte, index uint32) {
	b.exports = append(b.exports, Seq(sized(Code(name)), Op(kind), uleb(uint64(index))))
}

// AtInstantiation makes f the start section.
func (b *Builder) AtInstantiation(f Func) { b.start = uleb(uint64(f)) }

// Table adds a table of functions; max 0 declares no maximum.
func (b *Builder) Table(least, most uint32) {
	b.tables = append(b.tables, Seq(Op(0x70), limits(least, most)))
}

// Elements fills table 0 from entry 0.
func (b *Builder) Elements(functions ...Func) {
	var entries []Code
	for _, f := range functions {
		entries = append(entries, uleb(uint64(f)))
	}
	b.elements = append(b.elements, Seq(Op(0x00), I32(0), Op(0x0b), vector(entries...)))
}

// Data puts bytes into memory behind what is already there, growing the
// initial memory as needed.
func (b *Builder) Data(content []byte) Span {
	s := Span{b.next, uint32(len(content))}
	b.DataAt(s.Ptr, content)
	b.next = (s.Ptr + s.Len + 7) &^ 7
	b.MemoryMin = max(b.MemoryMin, b.next/65536+1)
	return s
}

// Text is Data of a string.
func (b *Builder) Text(s string) Span { return b.Data([]byte(s)) }

// DataAt puts bytes at an address, inside of memory or not.
func (b *Builder) DataAt(ptr uint32, content []byte) {
	b.data = append(b.data, Seq(Op(0x00), U32(ptr), Op(0x0b), sized(content)))
}

// Words is Data of little-endian 32-bit numbers.
func (b *Builder) Words(words ...uint32) Span { return b.Data(words32(words...)) }

// Bytes writes the module.
func (b *Builder) Bytes() []byte {
	var types, functions, bodies []Code
	for _, t := range b.types {
		types = append(types, functionType(t))
	}
	for _, f := range b.functions {
		functions = append(functions, uleb(uint64(f.typ)))
		bodies = append(bodies, sized(f.body))
	}
	out := Seq(Header,
		optional(1, types), optional(2, b.imports), optional(3, functions), optional(4, b.tables),
		Section(5, vector(limits(b.MemoryMin, b.MemoryMax))), optional(6, b.globals), optional(7, b.exports))
	if b.start != nil {
		out = Seq(out, Section(8, b.start))
	}
	out = Seq(out, optional(9, b.elements), optional(10, bodies), optional(11, b.data))
	if b.Manifest != "" {
		out = Seq(out, Custom(abi.ManifestSection, Code(b.Manifest)))
	}
	return out
}

// Header starts a core module.
var Header = Code("\x00asm\x01\x00\x00\x00")

// Section is a section by id.
func Section(id byte, content Code) Code { return Seq(Op(id), sized(content)) }

// Custom is a custom section.
func Custom(name string, content Code) Code { return Section(0, Seq(sized(Code(name)), content)) }

func optional(id byte, entries []Code) Code {
	if len(entries) == 0 {
		return nil
	}
	return Section(id, vector(entries...))
}

func sized(c Code) Code { return Seq(uleb(uint64(len(c))), c) }

func vector(entries ...Code) Code { return Seq(uleb(uint64(len(entries))), Seq(entries...)) }

// equal is a vector of n equal entries.
func equal(n int, entry Code) Code { return Seq(uleb(uint64(n)), repeat(n, entry)) }

func limits(least, most uint32) Code {
	if most == 0 {
		return Seq(Op(0), uleb(uint64(least)))
	}
	return Seq(Op(1), uleb(uint64(least)), uleb(uint64(most)))
}

func functionType(signature string) Code {
	in, out, _ := strings.Cut(signature, ">")
	return Seq(Op(0x60), valueTypes(in), valueTypes(out))
}

func valueTypes(letters string) Code {
	types := make(Code, 0, len(letters))
	for _, l := range letters {
		types = append(types, valueType(l))
	}
	return sized(types)
}

func valueType(letter rune) byte {
	switch letter {
	case 'i':
		return 0x7f
	case 'I':
		return 0x7e
	case 'f':
		return 0x7d
	case 'F':
		return 0x7c
	case 'v':
		return 0x7b
	}
	panic("corpus: no value type " + string(letter))
}
