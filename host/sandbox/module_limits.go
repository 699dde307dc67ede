package sandbox

// ModuleLimits limits the structure of a module. A zero field means its default.
type ModuleLimits struct {
	Bytes         int64 // module.bytes
	CustomBytes   int64 // all custom sections together
	ManifestBytes int64 // the section sluice.manifest

	Types           uint32
	Functions       uint32 // imported and defined together
	Imports         uint32
	Exports         uint32
	Globals         uint32
	DataSegments    uint32
	ElementSegments uint32
	ElementEntries  uint32 // of all element segments together

	Memories     uint32
	Tables       uint32
	TableMinimum uint64 // initial entries of all tables together

	BodyBytes      uint32 // of one function, locals included
	FunctionLocals uint64 // of one function, parameters included
	Locals         uint64 // of all functions together, parameters included
	Nesting        uint32 // blocks open at once in one function
	BranchTable    uint32 // entries of one br_table
	Signature      uint32 // parameters, and results, of one type
}

// DefaultModuleLimits returns the limits that apply unless the operator sets others.
func DefaultModuleLimits() ModuleLimits {
	return ModuleLimits{
		Bytes: 32 << 20, CustomBytes: 8 << 20, ManifestBytes: 256 << 10,
		Types: 10_000, Functions: 100_000, Imports: 256, Exports: 1_000, Globals: 10_000,
		DataSegments: 100_000, ElementSegments: 10_000, ElementEntries: 1_000_000,
		Memories: 1, Tables: 4, TableMinimum: 100_000,
		BodyBytes: 1 << 20, FunctionLocals: 50_000, Locals: 2_000_000,
		Nesting: 4_096, BranchTable: 65_520, Signature: 1_000,
	}
}

// HardModuleLimits returns the maximum of each limit. Only the sizes of a module and of its custom sections can be
// raised above the default.
func HardModuleLimits() ModuleLimits {
	hard := DefaultModuleLimits()
	hard.Bytes = 64 << 20
	hard.CustomBytes = hard.Bytes
	return hard
}

// Effective returns l with defaults for unset fields, and no field above its hard maximum. It is idempotent.
func (l ModuleLimits) Effective() ModuleLimits {
	def, hard := DefaultModuleLimits(), HardModuleLimits()
	bound(&l.Bytes, def.Bytes, hard.Bytes)
	bound(&l.CustomBytes, def.CustomBytes, hard.CustomBytes)
	bound(&l.ManifestBytes, def.ManifestBytes, hard.ManifestBytes)
	bound(&l.Types, def.Types, hard.Types)
	bound(&l.Functions, def.Functions, hard.Functions)
	bound(&l.Imports, def.Imports, hard.Imports)
	bound(&l.Exports, def.Exports, hard.Exports)
	bound(&l.Globals, def.Globals, hard.Globals)
	bound(&l.DataSegments, def.DataSegments, hard.DataSegments)
	bound(&l.ElementSegments, def.ElementSegments, hard.ElementSegments)
	bound(&l.ElementEntries, def.ElementEntries, hard.ElementEntries)
	bound(&l.Memories, def.Memories, hard.Memories)
	bound(&l.Tables, def.Tables, hard.Tables)
	bound(&l.TableMinimum, def.TableMinimum, hard.TableMinimum)
	bound(&l.BodyBytes, def.BodyBytes, hard.BodyBytes)
	bound(&l.FunctionLocals, def.FunctionLocals, hard.FunctionLocals)
	bound(&l.Locals, def.Locals, hard.Locals)
	bound(&l.Nesting, def.Nesting, hard.Nesting)
	bound(&l.BranchTable, def.BranchTable, hard.BranchTable)
	bound(&l.Signature, def.Signature, hard.Signature)
	return l
}

// bound sets an unset limit to its default, and lowers one above its maximum. A negative size is unset.
func bound[T int64 | uint32 | uint64](limit *T, def, hard T) {
	if *limit <= 0 {
		*limit = def
	}
	*limit = min(*limit, hard)
}
