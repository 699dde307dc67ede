package sandbox

// ModuleLimits bounds the structure of a module. A
// zero field means its default.
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

// DefaultModuleLimits returns the limits in force when the operator set none.
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

// HardModuleLimits returns what no operator can raise a limit above. Only the
// size of a module and of its custom sections have room over the default.
func HardModuleLimits() ModuleLimits {
	hard := DefaultModuleLimits()
	hard.Bytes = 64 << 20
	hard.CustomBytes = hard.Bytes
	return hard
}

// Effective returns l with defaults for zero fields, and no field above its
// hard maximum. It is idempotent.
func (l ModuleLimits) Effective() ModuleLimits {
	def, hard := DefaultModuleLimits(), HardModuleLimits()
	for i, f := range l.fields() {
		f.set(bounded(f.value, def.fields()[i].value, hard.fields()[i].value))
	}
	return l
}

func bounded(v, def, hard uint64) uint64 {
	if v == 0 {
		v = def
	}
	return min(v, hard)
}

// A moduleLimitField is one limit, to read and to set.
type moduleLimitField struct {
	value uint64
	set   func(uint64)
}

func (l *ModuleLimits) fields() []moduleLimitField {
	return []moduleLimitField{
		signedField(&l.Bytes),
		signedField(&l.CustomBytes),
		signedField(&l.ManifestBytes),
		limitField(&l.Types),
		limitField(&l.Functions),
		limitField(&l.Imports),
		limitField(&l.Exports),
		limitField(&l.Globals),
		limitField(&l.DataSegments),
		limitField(&l.ElementSegments),
		limitField(&l.ElementEntries),
		limitField(&l.Memories),
		limitField(&l.Tables),
		limitField(&l.TableMinimum),
		limitField(&l.BodyBytes),
		limitField(&l.FunctionLocals),
		limitField(&l.Locals),
		limitField(&l.Nesting),
		limitField(&l.BranchTable),
		limitField(&l.Signature),
	}
}

func limitField[T uint32 | uint64](p *T) moduleLimitField {
	return moduleLimitField{uint64(*p), func(v uint64) { *p = T(v) }}
}

// signedField treats a negative size as unset.
func signedField(p *int64) moduleLimitField {
	return moduleLimitField{uint64(max(*p, 0)), func(v uint64) { *p = int64(v) }}
}
