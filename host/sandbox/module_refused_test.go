package sandbox_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/sandbox"
)

// refusals has at least one module for every rule of CheckModule.
var refusals = []struct {
	name string
	rule string
	wasm func() []byte
	lim  sandbox.ModuleLimits
}{
	{name: "empty file", rule: sandbox.RuleHeader, wasm: func() []byte { return nil }},
	{name: "version 2", rule: sandbox.RuleHeader, wasm: func() []byte { return []byte("\x00asm\x02\x00\x00\x00") }},
	{name: "component", rule: sandbox.RuleComponent, wasm: func() []byte { return []byte("\x00asm\x0d\x00\x01\x00") }},
	{name: "larger than allowed", rule: sandbox.RuleModuleBytes, lim: sandbox.ModuleLimits{Bytes: 20},
		wasm: minimal().bytes},

	{name: "section id without size", rule: sandbox.RuleTruncated,
		wasm: func() []byte { return append(minimal().bytes(), 0) }},
	{name: "section beyond the end", rule: sandbox.RuleSectionSize,
		wasm: func() []byte { return append(minimal().bytes(), 11, 5, 0) }},
	{name: "section size of six bytes", rule: sandbox.RuleLEB, wasm: func() []byte {
		return append(minimal().bytes(), 11, 0x80, 0x80, 0x80, 0x80, 0x80, 0)
	}},
	{name: "section size over 32 bits", rule: sandbox.RuleLEB, wasm: func() []byte {
		return append(minimal().bytes(), 11, 0xff, 0xff, 0xff, 0xff, 0x1f)
	}},
	{name: "section with a tail", rule: sandbox.RuleSectionSize,
		wasm: minimal().with(1, append(vec([]byte{0x60, 0, 0}), 0)).bytes},
	{name: "section 14", rule: sandbox.RuleSectionUnknown, wasm: minimal().then(14, nil).bytes},
	{name: "tags", rule: sandbox.RuleFeature, wasm: minimal().then(13, []byte{0}).bytes},
	{name: "types twice", rule: sandbox.RuleSectionDuplicate, wasm: minimal().then(1, []byte{0}).bytes},
	{name: "table after code", rule: sandbox.RuleSectionOrder, wasm: minimal().then(4, []byte{0}).bytes},
	{name: "data count after code", rule: sandbox.RuleSectionOrder, wasm: minimal().then(12, []byte{0}).bytes},

	{name: "custom sections in all", rule: sandbox.RuleCustomSections, lim: sandbox.ModuleLimits{CustomBytes: 30},
		wasm: minimal().then(0, custom("a", make([]byte, 14)...)).then(0, custom("b", make([]byte, 14)...)).bytes},
	{name: "custom name not UTF-8", rule: sandbox.RuleUTF8, wasm: minimal().then(0, custom("\xff")).bytes},
	{name: "manifest too long", rule: sandbox.RuleManifestBytes,
		wasm: minimal().then(0, custom("sluice.manifest", make([]byte, 256<<10+1)...)).bytes},
	{name: "manifest twice", rule: sandbox.RuleManifestDuplicate,
		wasm: minimal().then(0, custom("sluice.manifest", '{', '}')).then(0, custom("sluice.manifest", '{', '}')).bytes},
	{name: "names beyond their subsection", rule: sandbox.RuleNameSection,
		wasm: minimal().then(0, custom("name", 1, 9)).bytes},
	{name: "names with a tail", rule: sandbox.RuleNameSection, wasm: minimal().then(0, custom("name", 1, 2, 0, 0)).bytes},
	{name: "four thousand million function names", rule: sandbox.RuleCount,
		wasm: minimal().then(0, custom("name", 1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f)).bytes},
	{name: "four thousand million local names", rule: sandbox.RuleCount,
		wasm: minimal().then(0, custom("name", 2, 7, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)).bytes},

	{name: "types", rule: sandbox.RuleTypes, wasm: minimal().with(1, many(10_001, 0x60, 0, 0)).bytes},
	{name: "struct type", rule: sandbox.RuleTypeForm, wasm: minimal().with(1, vec([]byte{0x5f, 0, 0})).bytes},
	{name: "exception reference", rule: sandbox.RuleValueType,
		wasm: minimal().with(1, vec([]byte{0x60, 1, 0x69, 0})).bytes},
	{name: "parameters", rule: sandbox.RuleSignature,
		wasm: minimal().with(1, vec(join([]byte{0x60}, many(1_001, 0x7f), []byte{0}))).bytes},
	{name: "results", rule: sandbox.RuleSignature,
		wasm: minimal().with(1, vec(join([]byte{0x60, 0}, many(1_001, 0x7f)))).bytes},
	{name: "function of no type", rule: sandbox.RuleTypeIndex, wasm: minimal().with(3, vec([]byte{1})).bytes},
	{name: "functions", rule: sandbox.RuleFunctions, wasm: minimal().with(3, many(100_001, 0)).bytes},
	{name: "functions and imports together", rule: sandbox.RuleFunctions, lim: sandbox.ModuleLimits{Functions: 3},
		wasm: minimal().with(1, vec([]byte{0x60, 0, 0}, []byte{0x60, 0, 1, 0x7f})).
			with(2, vec(imported("wasi_snapshot_preview1", "sched_yield", 0, 1))).with(3, many(3, 0)).bytes},
	{name: "types count over the bytes", rule: sandbox.RuleCount, wasm: minimal().with(1, uleb(9_999)).bytes},
	{name: "bodies without functions", rule: sandbox.RuleCodeCount,
		wasm: minimal().with(10, many(2, body(0x0b)...)).bytes},
	{name: "bodies without types", rule: sandbox.RuleCodeCount, wasm: func() []byte {
		p := minimal()
		p.sections = p.sections[4:]
		return p.bytes()
	}},
	{name: "functions without bodies", rule: sandbox.RuleCodeCount, wasm: func() []byte {
		p := minimal()
		p.sections = p.sections[:4]
		return p.bytes()
	}},

	{name: "imports", rule: sandbox.RuleImports, wasm: minimal().with(2, many(257, imported("m", "n", 0, 0)...)).bytes},
	{name: "imported memory", rule: sandbox.RuleImportKind,
		wasm: minimal().with(2, vec(imported("env", "memory", 2, 0, 1))).bytes},
	{name: "unknown module", rule: sandbox.RuleImportUnknown,
		wasm: minimal().with(2, vec(imported("env", "abort", 0, 0))).bytes},
	{name: "unknown function", rule: sandbox.RuleImportUnknown,
		wasm: minimal().with(2, vec(imported("sluice_v1", "exec", 0, 0))).bytes},
	{name: "known name with a tail", rule: sandbox.RuleImportUnknown,
		wasm: minimal().with(2, vec(imported("sluice_v1", "emit"+strings.Repeat("\x00", 500), 0, 0))).bytes},
	{name: "known function of another type", rule: sandbox.RuleImportSignature,
		wasm: minimal().with(2, vec(imported("sluice_v1", "emit", 0, 0))).bytes},
	{name: "one parameter too many", rule: sandbox.RuleImportSignature,
		wasm: minimal().with(1, vec([]byte{0x60, 0, 0}, []byte{0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7e})).
			with(2, vec(imported("sluice_v1", "emit", 0, 1))).bytes},

	{name: "two memories", rule: sandbox.RuleMemories, wasm: minimal().with(5, vec([]byte{0, 1}, []byte{0, 1})).bytes},
	{name: "shared memory", rule: sandbox.RuleMemoryShared, wasm: minimal().with(5, vec([]byte{3, 1, 1})).bytes},
	{name: "64-bit memory", rule: sandbox.RuleMemory64, wasm: minimal().with(5, vec([]byte{4, 1})).bytes},
	{name: "custom page size", rule: sandbox.RuleMemoryLimits, wasm: minimal().with(5, vec([]byte{8, 1, 0})).bytes},
	{name: "memory over 4 GiB", rule: sandbox.RuleMemoryLimits,
		wasm: minimal().with(5, vec(join([]byte{0}, uleb(65_537)))).bytes},
	{name: "memory maximum over 4 GiB", rule: sandbox.RuleMemoryLimits,
		wasm: minimal().with(5, vec(join([]byte{1, 1}, uleb(65_537)))).bytes},
	{name: "memory minimum over its maximum", rule: sandbox.RuleMemoryLimits,
		wasm: minimal().with(5, vec([]byte{1, 2, 1})).bytes},
	{name: "five tables", rule: sandbox.RuleTables, wasm: minimal().with(4, many(5, 0x70, 0, 0)).bytes},
	{name: "table of integers", rule: sandbox.RuleTableType, wasm: minimal().with(4, vec([]byte{0x7f, 0, 0})).bytes},
	{name: "64-bit table", rule: sandbox.RuleTableLimits, wasm: minimal().with(4, vec([]byte{0x70, 4, 0})).bytes},
	{name: "table minimum over its maximum", rule: sandbox.RuleTableLimits,
		wasm: minimal().with(4, vec([]byte{0x70, 1, 2, 1})).bytes},
	{name: "table minimum", rule: sandbox.RuleTableMinimum,
		wasm: minimal().with(4, vec(join([]byte{0x70, 0}, uleb(100_001)))).bytes},
	{name: "table minimum in all", rule: sandbox.RuleTableMinimum,
		wasm: minimal().with(4, many(2, join([]byte{0x70, 0}, uleb(50_001))...)).bytes},
	{name: "globals", rule: sandbox.RuleGlobals, wasm: minimal().with(6, many(10_001, 0x7f, 0, 0x41, 0, 0x0b)).bytes},
	{name: "shared global", rule: sandbox.RuleGlobalType,
		wasm: minimal().with(6, vec([]byte{0x7f, 2, 0x41, 0, 0x0b})).bytes},
	{name: "computed global", rule: sandbox.RuleConstExpr,
		wasm: minimal().with(6, vec([]byte{0x7f, 0, 0x41, 0, 0x41, 0, 0x6a, 0x0b})).bytes},
	{name: "global by a call", rule: sandbox.RuleConstExpr,
		wasm: minimal().with(6, vec([]byte{0x7f, 0, 0x10, 0, 0x0b})).bytes},
	{name: "global by a vector load", rule: sandbox.RuleConstExpr,
		wasm: minimal().with(6, vec(join([]byte{0x7b, 0, 0xfd, 0}, make([]byte, 16), []byte{0x0b}))).bytes},

	{name: "exports", rule: sandbox.RuleExports, wasm: minimal().with(7, many(1_001, export("x", 0, 0)...)).bytes},
	{name: "exported tag", rule: sandbox.RuleExportKind, wasm: minimal().with(7, vec(export("x", 4, 0))).bytes},
	{name: "export of nothing", rule: sandbox.RuleExportIndex, wasm: minimal().with(7, vec(export("x", 3, 0))).bytes},
	{name: "memory exported twice", rule: sandbox.RuleExportDuplicate,
		wasm: minimal().with(7, vec(export("memory", 2, 0), export("memory", 2, 0))).bytes},
	{name: "_start exported twice", rule: sandbox.RuleExportDuplicate,
		wasm: minimal().with(7, vec(export("_start", 0, 0), export("_start", 0, 0))).bytes},
	{name: "no memory export", rule: sandbox.RuleExportMemory, wasm: minimal().with(7, vec(export("_start", 0, 0))).bytes},
	{name: "memory is a function", rule: sandbox.RuleExportMemory,
		wasm: minimal().with(7, vec(export("memory", 0, 0))).bytes},
	{name: "no _start", rule: sandbox.RuleExportStart, wasm: minimal().with(7, vec(export("memory", 2, 0))).bytes},
	{name: "_start is a memory", rule: sandbox.RuleExportStart,
		wasm: minimal().with(7, vec(export("_start", 2, 0))).bytes},
	{name: "_start with a result", rule: sandbox.RuleExportStartType,
		wasm: minimal().with(1, vec([]byte{0x60, 0, 1, 0x7f})).bytes},
	{name: "start function of another type", rule: sandbox.RuleStartFunction,
		wasm: minimal().with(1, vec([]byte{0x60, 0, 0}, []byte{0x60, 1, 0x7f, 0})).with(3,
			vec([]byte{0}, []byte{1})).with(8, []byte{1}).bytes},
	{name: "start function missing", rule: sandbox.RuleStartFunction, wasm: minimal().with(8, []byte{9}).bytes},

	{name: "element segments", rule: sandbox.RuleElementSegments, wasm: minimal().with(9, many(10_001, 1, 0, 0)).bytes},
	{name: "element entries of one", rule: sandbox.RuleElementEntries, lim: sandbox.ModuleLimits{ElementEntries: 5},
		wasm: minimal().with(9, vec(join([]byte{1, 0}, many(6, 0)))).bytes},
	{name: "element entries in all", rule: sandbox.RuleElementEntries, lim: sandbox.ModuleLimits{ElementEntries: 5},
		wasm: minimal().with(9, many(2, join([]byte{1, 0}, many(3, 0))...)).bytes},
	{name: "element count over the bytes", rule: sandbox.RuleCount, wasm: minimal().with(9, vec([]byte{1, 0, 100})).bytes},
	{name: "element kind 8", rule: sandbox.RuleElementKind, wasm: minimal().with(9, vec([]byte{8, 0, 0})).bytes},
	{name: "element of tables", rule: sandbox.RuleElementKind, wasm: minimal().with(9, vec([]byte{1, 1, 0})).bytes},
	{name: "data segments", rule: sandbox.RuleDataSegments, wasm: minimal().with(11, many(100_001, 1, 0)).bytes},
	{name: "data kind 3", rule: sandbox.RuleDataKind, wasm: minimal().with(11, vec([]byte{3, 0})).bytes},
	{name: "data for memory 1", rule: sandbox.RuleDataKind,
		wasm: minimal().with(11, vec([]byte{2, 1, 0x41, 0, 0x0b, 0})).bytes},
	{name: "data beyond the end", rule: sandbox.RuleTruncated,
		wasm: minimal().with(11, vec([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f})).bytes},
	{name: "data count differs", rule: sandbox.RuleDataCount,
		wasm: minimal().with(12, []byte{2}).with(11, many(1, 1, 0)).bytes},
	{name: "data count without data", rule: sandbox.RuleDataCount, wasm: minimal().with(12, []byte{1}).bytes},

	{name: "function body", rule: sandbox.RuleFunctionBody,
		wasm: minimal().code(append(bytes.Repeat([]byte{0, 1}, 1<<19), 0x0b)...).bytes},
	{name: "body beyond the section", rule: sandbox.RuleTruncated,
		wasm: minimal().with(10, vec([]byte{9, 0, 0x0b})).bytes},
	{name: "locals in one group", rule: sandbox.RuleFunctionLocals,
		wasm: minimal().code(1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b).bytes},
	{name: "locals in two groups", rule: sandbox.RuleFunctionLocals,
		wasm: minimal().code(join([]byte{2}, uleb(25_000), []byte{0x7f}, uleb(25_001), []byte{0x7e, 0x0b})...).bytes},
	{name: "parameters are locals", rule: sandbox.RuleFunctionLocals, lim: sandbox.ModuleLimits{FunctionLocals: 2},
		wasm: minimal().with(1, vec([]byte{0x60, 0, 0}, []byte{0x60, 3, 0x7f, 0x7f, 0x7f, 0})).with(3,
			vec([]byte{0}, []byte{1})).
			with(10, many(2, body(0x0b)...)).bytes},
	{name: "locals in all", rule: sandbox.RuleLocalsTotal,
		wasm: minimal().with(3, many(41, 0)).with(10,
			many(41, sized(join([]byte{1}, uleb(50_000), []byte{0x7f, 0x0b}))...)).bytes},
	{name: "local of an unknown type", rule: sandbox.RuleValueType, wasm: minimal().code(1, 1, 0x63, 0x0b).bytes},
	{name: "nesting", rule: sandbox.RuleBlockNesting,
		wasm: minimal().code(join([]byte{0}, bytes.Repeat([]byte{2, 0x40}, 4_097),
			bytes.Repeat([]byte{0x0b}, 4_098))...).bytes},
	{name: "block of an unknown type", rule: sandbox.RuleBlockType, wasm: minimal().code(0, 2, 1, 0x0b, 0x0b).bytes},
	{name: "block of a reference type", rule: sandbox.RuleBlockType,
		wasm: minimal().code(0, 2, 0x63, 0x70, 0x0b, 0x0b).bytes},
	{name: "branch table", rule: sandbox.RuleBranchTable,
		wasm: minimal().code(join([]byte{0, 0x41, 0, 0x0e}, many(65_521, 0), []byte{0, 0x0b})...).bytes},
	{name: "branch table over the bytes", rule: sandbox.RuleCount,
		wasm: minimal().code(join([]byte{0, 0x41, 0, 0x0e}, uleb(65_520), []byte{0, 0x0b})...).bytes},
	{name: "tail call", rule: sandbox.RuleOpcode, wasm: minimal().code(0, 0x12, 0, 0x0b).bytes},
	{name: "try", rule: sandbox.RuleOpcode, wasm: minimal().code(0, 0x1f, 0x40, 0, 0x0b, 0x0b).bytes},
	{name: "atomics", rule: sandbox.RuleOpcode, wasm: minimal().code(0, 0xfe, 0x03, 0, 0x0b).bytes},
	{name: "unknown bulk instruction", rule: sandbox.RuleOpcode, wasm: minimal().code(0, 0xfc, 0x12, 0x0b).bytes},
	{name: "relaxed vector instruction", rule: sandbox.RuleOpcode, wasm: minimal().code(0, 0xfd, 0x80, 0x02, 0x0b).bytes},
	{name: "vector instruction in two readings", rule: sandbox.RuleOpcode,
		wasm: minimal().code(0, 0xfd, 0x8b, 0x00, 0, 0, 0x0b).bytes},
	{name: "load of another memory", rule: sandbox.RuleImmediate,
		wasm: minimal().code(0, 0x41, 0, 0x28, 0x42, 1, 0, 0x1a, 0x0b).bytes},
	{name: "grow of another memory", rule: sandbox.RuleImmediate,
		wasm: minimal().code(0, 0x41, 0, 0x40, 1, 0x1a, 0x0b).bytes},
	{name: "select of two types", rule: sandbox.RuleImmediate, wasm: minimal().code(0, 0x1c, 2, 0x7f, 0x7f, 0x0b).bytes},
	{name: "null of an unknown type", rule: sandbox.RuleImmediate, wasm: minimal().code(0, 0xd0, 0x69, 0x1a, 0x0b).bytes},
	{name: "number over its width", rule: sandbox.RuleLEB,
		wasm: minimal().code(0, 0x41, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x1a, 0x0b).bytes},
	{name: "number of eleven bytes", rule: sandbox.RuleLEB,
		wasm: minimal().code(0, 0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x1a, 0x0b).bytes},
	{name: "number cut off", rule: sandbox.RuleTruncated, wasm: minimal().code(0, 0x41, 0x80).bytes},
	{name: "float cut off", rule: sandbox.RuleTruncated, wasm: minimal().code(0, 0x44, 0, 0x0b).bytes},
	{name: "lane cut off", rule: sandbox.RuleTruncated, wasm: minimal().code(0, 0xfd, 0x54, 0, 0).bytes},
	{name: "code after the end", rule: sandbox.RuleBodyEnd, wasm: minimal().code(0, 0x0b, 0x01).bytes},
	{name: "no end", rule: sandbox.RuleBodyEnd, wasm: minimal().code(0, 0x02, 0x40, 0x0b).bytes},
}

func TestCheckModuleRefuses(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			wasm := tt.wasm()
			_, err := sandbox.CheckModule(wasm, tt.lim)
			var refused *sandbox.ModuleError
			if !errors.As(err, &refused) {
				t.Fatalf("CheckModule = %v, want a refusal by %s", err, tt.rule)
			}
			if refused.Rule != tt.rule {
				t.Errorf("rule %s, want %s: %v", refused.Rule, tt.rule, err)
			}
			if refused.Offset < 0 || refused.Offset > int64(len(wasm)) {
				t.Errorf("offset %d of %d bytes", refused.Offset, len(wasm))
			}
			if text := err.Error(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) || len(text) > 500 {
				t.Errorf("text is not fit for a line: %q", text)
			}
		})
	}
}

// A rule that nothing breaks is either dead or untested.
func TestEveryRuleIsBroken(t *testing.T) {
	broken := map[string]bool{sandbox.RuleImportBinding: true} // TestCheckBindings
	for _, tt := range refusals {
		broken[tt.rule] = true
	}
	for _, rule := range strings.Fields(frozenRules) {
		if !broken[rule] {
			t.Errorf("no module breaks %s", rule)
		}
		delete(broken, rule)
	}
	for rule := range broken {
		t.Errorf("rule %s is not on the frozen list", rule)
	}
}

// frozenRules are part of the API: append only.
const frozenRules = `
module_bytes header component_model truncated leb128 utf8 count section_unknown section_order section_duplicate section_size feature
custom_sections manifest_bytes manifest_duplicate name_section
types type_form value_type signature type_index functions code_count imports import_kind import_unknown import_signature import_binding
memories memory_shared memory_64 memory_limits tables table_type table_limits table_minimum globals global_type const_expr
exports export_kind export_index export_duplicate export_memory export_start export_start_type start_function
element_segments element_entries element_kind data_segments data_kind data_count
function_body function_locals locals_total block_nesting block_type branch_table opcode immediate body_end`
