package corpus

import "slices"

// sectionOrder is the order that the walk accepts.
var sectionOrder = []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11}

// smallest returns the sections of the smallest connector by id.
func smallest() map[byte]Code {
	return map[byte]Code{
		1:  vector(functionType(">")),
		3:  vector(Op(0)),
		5:  vector(limits(1, 0)),
		7:  vector(exportEntry("memory", 2, 0), exportEntry("_start", 0, 0)),
		10: vector(sized(Op(0x00, 0x0b))),
	}
}

func exportEntry(name string, kind, index byte) Code {
	return Seq(sized(Code(name)), Op(kind, index))
}

func importEntry(module, name string, kind byte, description ...byte) Code {
	return Seq(sized(Code(module)), sized(Code(name)), Op(kind), description)
}

// altered is the smallest connector with other contents of some sections.
func altered(changes map[byte]Code) func() []byte {
	return func() []byte {
		sections := smallest()
		for id, content := range changes {
			sections[id] = content
		}
		out := slices.Clone(Header)
		for _, id := range sectionOrder {
			if content, ok := sections[id]; ok {
				out = Seq(out, Section(id, content))
			}
		}
		return out
	}
}

// without is the smallest connector less some sections.
func without(ids ...byte) func() []byte {
	return func() []byte {
		sections := smallest()
		out := slices.Clone(Header)
		for _, id := range sectionOrder {
			if content, ok := sections[id]; ok && !slices.Contains(ids, id) {
				out = Seq(out, Section(id, content))
			}
		}
		return out
	}
}

// followed is the smallest connector with more bytes behind it.
func followed(more ...Code) func() []byte {
	return func() []byte { return Seq(without()(), Seq(more...)) }
}

func refused(name, rule string, wasm func() []byte) Case {
	return Case{Name: "refused-" + name, Group: GroupRefused, Rule: "structure walk", Wasm: wasm, Want: rule}
}

// refusedFiles breaks the frame of the file: header, sections, numbers.
func refusedFiles() []Case {
	return []Case{
		refused("empty", "header", func() []byte { return nil }),
		refused("elf", "header", func() []byte { return []byte("\x7fELF\x02\x01\x01\x00") }),
		refused("text-format", "header", func() []byte { return []byte("(module (memory 1))") }),
		refused("half-header", "header", func() []byte { return Header[:6] }),
		refused("component", "component_model", func() []byte { return []byte("\x00asm\x0d\x00\x01\x00\x00\x00") }),
		refused("section-cut", "truncated", followed(Op(0))),
		refused("section-size-4g", "section_size", followed(Op(11, 0xff, 0xff, 0xff, 0xff, 0x0f))),
		refused("section-size-overlong", "leb128", followed(Op(11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00))),
		refused("section-size-overflow", "leb128", followed(Op(11, 0xff, 0xff, 0xff, 0xff, 0x7f))),
		refused("section-size-unending", "truncated", followed(Op(11, 0x80, 0x80))),
		refused("section-tail", "section_size", altered(map[byte]Code{3: Op(1, 0, 0)})),
		refused("section-unknown", "section_unknown", followed(Section(99, nil))),
		refused("section-tag", "feature", followed(Section(13, vector(Op(0, 0))))),
		refused("section-twice", "section_duplicate", followed(Section(10, vector(sized(Op(0, 0x0b)))))),
		refused("section-order", "section_order", followed(Section(6, equal(0, nil)))),
		refused("code-before-functions", "code_count", func() []byte {
			s := smallest()
			return Seq(Header, Section(1, s[1]), Section(10, s[10]), Section(3, s[3]))
		}),
		refused("custom-8m", "custom_sections", followed(Custom("debug", make(Code, 8<<20)))),
		refused("custom-many", "custom_sections", followed(repeat(9, Custom("debug", make(Code, 1<<20))))),
		refused("custom-name-4g", "truncated", followed(Section(0, Op(0xff, 0xff, 0xff, 0xff, 0x0f)))),
		refused("custom-name-utf8", "utf8", followed(Custom("\xed\xa0\x80", nil))),
		refused("manifest-long", "manifest_bytes", followed(Custom("sluice.manifest", make(Code, 256<<10+1)))),
		refused("manifest-twice", "manifest_duplicate",
			followed(Custom("sluice.manifest", Code(Manifest)), Custom("sluice.manifest", Code(FilesManifest)))),
		refused("names-4g", "count", followed(Custom("name", Seq(Op(1), sized(Op(0xff, 0xff, 0xff, 0xff, 0x0f)))))),
		refused("local-names-4g", "count",
			followed(Custom("name", Seq(Op(2), sized(Op(1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)))))),
		refused("module-32m", "module_bytes", func() []byte { return Seq(Header, make(Code, 32<<20)) }),
	}
}
