package sandbox_test

import (
	"bytes"
	"encoding/binary"
)

// parts is a module as its sections, so that a test replaces one and keeps a
// valid rest.
type parts struct {
	header   []byte
	sections []part
}

type part struct {
	id      byte
	content []byte
}

// minimal is the smallest connector: a memory and a _start that does nothing.
func minimal() *parts {
	return &parts{
		header: []byte("\x00asm\x01\x00\x00\x00"),
		sections: []part{
			{1, vec([]byte{0x60, 0, 0})},
			{3, vec([]byte{0})},
			{5, vec([]byte{0, 1})},
			{7, vec(export("memory", 2, 0), export("_start", 0, 0))},
			{10, vec(body(0x0b))},
		},
	}
}

// with replaces the section id, or puts it where the order wants it.
func (p *parts) with(id byte, content []byte) *parts {
	order := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11}
	at := bytes.IndexByte(order, id)
	for i, s := range p.sections {
		if s.id == id {
			p.sections[i].content = content
			return p
		}
		if bytes.IndexByte(order, s.id) > at {
			p.sections = append(p.sections[:i], append([]part{{id, content}}, p.sections[i:]...)...)
			return p
		}
	}
	return p.then(id, content)
}

// then appends a section, in order or not.
func (p *parts) then(id byte, content []byte) *parts {
	p.sections = append(p.sections, part{id, content})
	return p
}

// code gives _start the body made of locals and instructions.
func (p *parts) code(raw ...byte) *parts { return p.with(10, vec(sized(raw))) }

func (p *parts) bytes() []byte {
	out := bytes.Clone(p.header)
	for _, s := range p.sections {
		out = append(out, s.id)
		out = append(out, sized(s.content)...)
	}
	return out
}

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func sized(b []byte) []byte { return append(uleb(uint64(len(b))), b...) }

func vec(entries ...[]byte) []byte {
	return append(uleb(uint64(len(entries))), bytes.Join(entries, nil)...)
}

// many is a vector of n equal entries.
func many(n int, entry ...byte) []byte {
	return append(uleb(uint64(n)), bytes.Repeat(entry, n)...)
}

func export(name string, kind byte, index uint64) []byte {
	return join(sized([]byte(name)), []byte{kind}, uleb(index))
}

func imported(module, name string, kind byte, desc ...byte) []byte {
	return join(sized([]byte(module)), sized([]byte(name)), []byte{kind}, desc)
}

func custom(name string, content ...byte) []byte { return join(sized([]byte(name)), content) }

// body is a function without locals.
func body(instructions ...byte) []byte { return sized(join([]byte{0}, instructions)) }

func join(s ...[]byte) []byte { return bytes.Join(s, nil) }
