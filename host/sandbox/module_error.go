package sandbox

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// API codes of a refused module.
const (
	CodeModuleInvalid  = "module_invalid"
	CodeEscapeAttempt  = "sandbox_escape_attempt"
	importNameShown    = 80 // bytes of a refused import's name in texts
	escapeHostFS       = "host-fs-escape"
	escapeHostEnv      = "host-env-leak"
	escapeNetwork      = "network-escape"
	escapeHostProcess  = "host-process-escape"
	escapeKindNotKnown = "other"
)

// A ModuleError says why a module was refused. Its texts are safe to show: names from the module are quoted and cut.
type ModuleError struct {
	Rule   string // one of the Rule constants; details.rule of the API
	Offset int64  // byte of the module where the fault was found
	Detail string // what is wrong, with the limit where there is one
	Import string // the refused import as module.name, unquoted, each name cut after 81 bytes; else empty
}

// Error returns the rule, the position, the fault and what to do about it.
func (e *ModuleError) Error() string {
	return fmt.Sprintf("module refused (%s) at byte %d: %s; %s", e.Rule, e.Offset, e.Detail, remedy(e.Rule))
}

// Code returns the API's code: CodeEscapeAttempt for a refused import, else
// CodeModuleInvalid.
func (e *ModuleError) Code() string {
	if e.EscapeAttempt() {
		return CodeEscapeAttempt
	}
	return CodeModuleInvalid
}

// EscapeAttempt reports whether the module was refused because of what it imports.
func (e *ModuleError) EscapeAttempt() bool {
	switch e.Rule {
	case RuleImportUnknown, RuleImportSignature, RuleImportKind, RuleImportBinding:
		return true
	}
	return false
}

// EscapeKind guesses from the name of a refused import what it would have reached, and returns it in the words of the
// API. It is empty if EscapeAttempt is false.
func (e *ModuleError) EscapeKind() string {
	if !e.EscapeAttempt() {
		return ""
	}
	module, name, _ := strings.Cut(e.Import, ".")
	if module == abi.ModuleNetwork || module == abi.ModuleBrowser {
		return escapeNetwork
	}
	words := strings.ToLower(module + "." + name)
	for _, k := range escapeWords {
		for _, word := range k.words {
			if strings.Contains(words, word) {
				return k.kind
			}
		}
	}
	return escapeKindNotKnown
}

// escapeWords maps parts of names to the kind of escape. The first match counts.
var escapeWords = []struct {
	kind  string
	words []string
}{
	{escapeNetwork, []string{"sock", "net", "http", "dns", "tcp", "udp", "dial", "connect", "listen", "fetch"}},
	{escapeHostProcess, []string{"proc", "exec", "spawn", "fork", "system", "kill", "thread", "dlopen",
		"syscall", "raise"}},
	{escapeHostEnv, []string{"environ", "getenv", "env_", "args"}},
	{escapeHostFS, []string{"path", "file", "open", "read", "write", "fd_", "dir", "fs"}},
}

// fault makes a ModuleError. format and args must not contain unquoted names from the module.
func fault(rule string, at int, format string, args ...any) *ModuleError {
	return &ModuleError{Rule: rule, Offset: int64(at), Detail: fmt.Sprintf(format, args...)}
}

// overLimit makes the ModuleError of a count or size above its limit.
func overLimit(rule string, at int, subject string, have, limit uint64, unit string) *ModuleError {
	return fault(rule, at, "%s has %d %s, the limit is %d", subject, have, unit, limit)
}

// quoted returns name quoted in ASCII and cut, for texts.
func quoted(name []byte) string {
	if len(name) > importNameShown {
		return fmt.Sprintf("%+q…", name[:importNameShown])
	}
	return fmt.Sprintf("%+q", name)
}

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
	RuleImportBinding   = "import_binding" // the manifest does not declare it

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

// remedy returns what the author can do about a refusal.
func remedy(rule string) string {
	switch rule {
	case RuleHeader, RuleTruncated, RuleLEB, RuleUTF8, RuleCount, RuleSectionUnknown, RuleSectionOrder,
		RuleSectionDuplicate, RuleSectionSize, RuleNameSection, RuleTypeForm, RuleTypeIndex, RuleCodeCount, RuleBodyEnd,
		RuleExportIndex, RuleExportDuplicate, RuleDataCount, RuleStartFunction, RuleConstExpr:
		return "the file is damaged or was not written by a compiler; build it again"
	case RuleComponent:
		return "build a core module for wasip1, not a component"
	case RuleFeature, RuleValueType, RuleMemory64, RuleMemoryShared, RuleOpcode, RuleImmediate, RuleBlockType,
		RuleImportKind, RuleExportKind, RuleTableType, RuleTableLimits, RuleGlobalType, RuleElementKind,
		RuleDataKind, RuleMemoryLimits:
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
