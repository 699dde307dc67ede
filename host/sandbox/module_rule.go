package sandbox

// The rules that CheckModule and CheckBindings refuse by. They are part of the
// API, as details.rule of module_invalid: append-only, frozen by a test.
const (
	// The file as a whole.
	RuleModuleBytes      = "module_bytes"
	RuleHeader           = "header"
	RuleComponent        = "component_model"
	RuleTruncated        = "truncated"
	RuleLEB              = "leb128"
	RuleUTF8             = "utf8"
	RuleCount            = "count" // more entries declared than bytes remain
	RuleSectionUnknown   = "section_unknown"
	RuleSectionOrder     = "section_order"
	RuleSectionDuplicate = "section_duplicate"
	RuleSectionSize      = "section_size"
	RuleFeature          = "feature" // outside of CoreFeaturesV2

	// Custom sections.
	RuleCustomSections    = "custom_sections"
	RuleManifestBytes     = "manifest_bytes"
	RuleManifestDuplicate = "manifest_duplicate"
	RuleNameSection       = "name_section"

	// Types, functions and imports.
	RuleTypes           = "types"
	RuleTypeForm        = "type_form"
	RuleValueType       = "value_type"
	RuleSignature       = "signature"
	RuleTypeIndex       = "type_index"
	RuleFunctions       = "functions"
	RuleCodeCount       = "code_count"
	RuleImports         = "imports"
	RuleImportKind      = "import_kind"
	RuleImportUnknown   = "import_unknown"
	RuleImportSignature = "import_signature"
	RuleImportBinding   = "import_binding" // G4: the manifest does not declare it

	// Memories, tables, globals.
	RuleMemories     = "memories"
	RuleMemoryShared = "memory_shared"
	RuleMemory64     = "memory_64"
	RuleMemoryLimits = "memory_limits"
	RuleTables       = "tables"
	RuleTableType    = "table_type"
	RuleTableLimits  = "table_limits"
	RuleTableMinimum = "table_minimum"
	RuleGlobals      = "globals"
	RuleGlobalType   = "global_type"
	RuleConstExpr    = "const_expr"

	// Exports and start.
	RuleExports         = "exports"
	RuleExportKind      = "export_kind"
	RuleExportIndex     = "export_index"
	RuleExportDuplicate = "export_duplicate"
	RuleExportMemory    = "export_memory"
	RuleExportStart     = "export_start"
	RuleExportStartType = "export_start_type"
	RuleStartFunction   = "start_function"

	// Segments.
	RuleElementSegments = "element_segments"
	RuleElementEntries  = "element_entries"
	RuleElementKind     = "element_kind"
	RuleDataSegments    = "data_segments"
	RuleDataKind        = "data_kind"
	RuleDataCount       = "data_count"

	// Code.
	RuleFunctionBody   = "function_body"
	RuleFunctionLocals = "function_locals"
	RuleLocalsTotal    = "locals_total"
	RuleBlockNesting   = "block_nesting"
	RuleBlockType      = "block_type"
	RuleBranchTable    = "branch_table"
	RuleOpcode         = "opcode"
	RuleImmediate      = "immediate"
	RuleBodyEnd        = "body_end"
)

// remedy says what the author can do about a refusal (STYLE 21).
func remedy(rule string) string {
	switch rule {
	case RuleHeader, RuleTruncated, RuleLEB, RuleUTF8, RuleCount, RuleSectionUnknown, RuleSectionOrder,
		RuleSectionDuplicate, RuleSectionSize, RuleNameSection, RuleTypeForm, RuleTypeIndex, RuleCodeCount, RuleBodyEnd,
		RuleExportIndex, RuleExportDuplicate, RuleDataCount, RuleStartFunction, RuleConstExpr:
		return "the file is damaged or was not written by a compiler; build it again"
	case RuleComponent:
		return "build a core module for wasip1, not a component"
	case RuleFeature, RuleValueType, RuleMemory64, RuleMemoryShared, RuleOpcode, RuleImmediate, RuleBlockType,
		RuleImportKind, RuleExportKind, RuleTableType, RuleTableLimits, RuleGlobalType, RuleElementKind, RuleDataKind, RuleMemoryLimits:
		return "build for WebAssembly 2.0 without threads, tail calls, exceptions, multiple or 64-bit memories"
	case RuleCustomSections:
		return "strip debug information"
	case RuleManifestBytes, RuleManifestDuplicate:
		return "embed the manifest again with sluice build"
	case RuleImportUnknown, RuleImportSignature:
		return "use only functions of the Sluice ABI and WASI preview 1"
	case RuleImportBinding:
		return "declare the binding under runtime_requirements.bindings or remove the import"
	case RuleExportMemory, RuleExportStart, RuleExportStartType:
		return "build a command (for Go: GOOS=wasip1 GOARCH=wasm, package main) that exports memory and _start"
	default:
		return "make the module smaller or simpler"
	}
}
