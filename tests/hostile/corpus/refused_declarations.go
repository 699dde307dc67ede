package corpus

import "strings"

// count4G is a vector length that no file can hold.
var count4G = Op(0xff, 0xff, 0xff, 0xff, 0x0f)

// refusedDeclarations breaks everything before the code.
func refusedDeclarations() []Case {
	return []Case{
		refused("types-4g", "types", altered(map[byte]Code{1: count4G})),
		refused("types-10001", "types", altered(map[byte]Code{1: equal(10_001, functionType(">"))})),
		refused("types-beyond-bytes", "count", altered(map[byte]Code{1: uleb(10_000)})),
		refused("type-not-function", "type_form", altered(map[byte]Code{1: vector(Op(0x50, 0, 0))})),
		refused("type-exnref", "value_type", altered(map[byte]Code{1: vector(Op(0x60, 1, 0x69, 0))})),
		refused("parameters-1001", "signature",
			altered(map[byte]Code{1: vector(functionType(strings.Repeat("i", 1_001) + ">"))})),
		refused("results-4g", "signature", altered(map[byte]Code{1: vector(Seq(Op(0x60, 0), count4G))})),
		refused("functions-4g", "functions", altered(map[byte]Code{3: count4G})),
		refused("functions-900000", "functions",
			altered(map[byte]Code{3: equal(900_000, Op(0)), 10: equal(900_000, Op(2, 0, 0x0b))})),
		refused("functions-of-no-type", "type_index", altered(map[byte]Code{3: vector(Op(7))})),
		refused("functions-without-code", "code_count", without(10)),
		refused("code-without-functions", "code_count", without(3, 7)),
		refused("imports-257", "imports", altered(map[byte]Code{2: equal(257, importEntry("env", "f", 0, 0))})),
		refused("imports-4g", "imports", altered(map[byte]Code{2: count4G})),

		refusedImport("import-memory", "import_kind", importEntry("env", "memory", 2, 0, 1)),
		refusedImport("import-table", "import_kind", importEntry("env", "table", 1, 0x70, 0, 0)),
		refusedImport("import-global", "import_kind", importEntry("sluice_v1", "start", 3, 0x7f, 0)),
		refusedImport("import-env-system", "import_unknown", importEntry("env", "system", 0, 0)),
		refusedImport("import-js", "import_unknown", importEntry("gojs", "syscall/js.valueCall", 0, 0)),
		refusedImport("import-wasi-unstable", "import_unknown", importEntry("wasi_unstable", "fd_write", 0, 0)),
		refusedImport("import-wasi-threads", "import_unknown", importEntry("wasi", "thread-spawn", 0, 0)),
		refusedImport("import-sock-open", "import_unknown", importEntry("wasi_snapshot_preview1", "sock_open", 0, 0)),
		refusedImport("import-proc-raise", "import_unknown", importEntry("wasi_snapshot_preview1", "proc_raise", 0, 0)),
		refusedImport("import-next-major", "import_unknown", importEntry("sluice_v2", "start", 0, 0)),
		refusedImport("import-case-folded", "import_unknown", importEntry("Sluice_v1", "Start", 0, 0)),
		refusedImport("import-name-nul", "import_unknown", importEntry("sluice_v1", "start\x00", 0, 0)),
		refusedImport("import-name-empty", "import_unknown", importEntry("", "", 0, 0)),
		refusedImport("import-name-1m", "import_unknown", importEntry("sluice_v1", strings.Repeat("a", 1<<20), 0, 0)),
		refusedImport("import-name-utf8", "utf8", importEntry("sluice_v1", "\xff", 0, 0)),
		refusedImport("import-signature-sluice", "import_signature", importEntry("sluice_v1", "emit", 0, 0)),
		refusedImport("import-signature-wasi", "import_signature", importEntry("wasi_snapshot_preview1", "proc_exit", 0, 0)),

		refused("memories-2", "memories", altered(map[byte]Code{5: equal(2, limits(1, 0))})),
		refused("memory-shared", "memory_shared", altered(map[byte]Code{5: vector(Op(3, 1, 1))})),
		refused("memory-64", "memory_64", altered(map[byte]Code{5: vector(Op(4, 1))})),
		refused("memory-page-size", "memory_limits", altered(map[byte]Code{5: vector(Op(8, 1, 0))})),
		refused("memory-over-4g", "memory_limits", altered(map[byte]Code{5: vector(limits(65_537, 0))})),
		refused("memory-min-over-max", "memory_limits", altered(map[byte]Code{5: vector(limits(9, 3))})),
		refused("tables-5", "tables", altered(map[byte]Code{4: equal(5, Seq(Op(0x70), limits(1, 0)))})),
		refused("table-minimum-4g", "table_minimum", altered(map[byte]Code{4: vector(Seq(Op(0x70), limits(^uint32(0), 0)))})),
		refused("table-minimum-in-all", "table_minimum",
			altered(map[byte]Code{4: equal(4, Seq(Op(0x6f), limits(25_001, 0)))})),
		refused("table-64", "table_limits", altered(map[byte]Code{4: vector(Op(0x70, 4, 0))})),
		refused("table-initialised", "table_type",
			altered(map[byte]Code{4: vector(Op(0x40, 0, 0x70, 0, 0, 0xd0, 0x70, 0x0b))})),
		refused("globals-10001", "globals", altered(map[byte]Code{6: equal(10_001, Op(0x7f, 0, 0x41, 0, 0x0b))})),
		refused("global-computed", "const_expr",
			altered(map[byte]Code{6: vector(Op(0x7f, 0, 0x41, 1, 0x41, 1, 0x6a, 0x0b))})),
		refused("global-unending", "const_expr",
			altered(map[byte]Code{6: vector(Seq(Op(0x7f, 0), repeat(10_000, Op(0x41, 0))))})),

		refused("exports-1001", "exports", altered(map[byte]Code{7: equal(1_001, exportEntry("x", 0, 0))})),
		refused("export-of-nothing", "export_index", altered(map[byte]Code{7: vector(exportEntry("x", 0, 9))})),
		refused("export-tag", "export_kind", altered(map[byte]Code{7: vector(exportEntry("x", 4, 0))})),
		refused("no-memory-export", "export_memory", altered(map[byte]Code{7: vector(exportEntry("_start", 0, 0))})),
		refused("no-exports", "export_memory", without(7)),
		refused("memory-is-function", "export_memory", altered(map[byte]Code{7: vector(exportEntry("memory", 0, 0))})),
		refused("no-start-export", "export_start",
			altered(map[byte]Code{7: vector(exportEntry("memory", 2, 0), exportEntry("main", 0, 0))})),
		refused("start-is-memory", "export_start", altered(map[byte]Code{7: vector(exportEntry("_start", 2, 0))})),
		refused("start-export-twice", "export_duplicate",
			altered(map[byte]Code{7: vector(exportEntry("_start", 0, 0), exportEntry("_start", 0, 0))})),
		refused("start-export-type", "export_start_type", altered(map[byte]Code{1: vector(functionType("i>"))})),
		refused("start-section-type", "start_function",
			altered(map[byte]Code{1: vector(functionType(">"), functionType("i>")), 3: vector(Op(0), Op(1)), 8: Op(1)})),
		refused("start-section-of-nothing", "start_function", altered(map[byte]Code{8: count4G})),

		refused("elements-10001", "element_segments", altered(map[byte]Code{9: equal(10_001, Op(1, 0, 0))})),
		refused("element-entries-4g", "element_entries", altered(map[byte]Code{9: vector(Seq(Op(1, 0), count4G))})),
		refused("element-entries-million", "element_entries",
			altered(map[byte]Code{9: equal(2, Seq(Op(1, 0), equal(600_000, Op(0))))})),
		refused("element-kind", "element_kind", altered(map[byte]Code{9: vector(Op(0x10, 0, 0))})),
		refused("data-100001", "data_segments", altered(map[byte]Code{11: equal(100_001, Op(1, 0))})),
		refused("data-4g", "truncated", altered(map[byte]Code{11: vector(Seq(Op(1), count4G))})),
		refused("data-memory-1", "data_kind", altered(map[byte]Code{11: vector(Op(2, 1, 0x41, 0, 0x0b, 0))})),
		refused("data-count-4g", "data_segments", altered(map[byte]Code{12: count4G})),
		refused("data-count-differs", "data_count", altered(map[byte]Code{12: Op(2), 11: equal(1, Op(1, 0))})),
	}
}

// refusedImport is a module that imports one thing that it may not have.
func refusedImport(name, rule string, entry Code) Case {
	c := refused(name, rule, altered(map[byte]Code{2: vector(entry)}))
	c.Rule = "allowed imports"
	return c
}
