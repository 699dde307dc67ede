package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
)

// customSection limits the total size of custom sections, copies the manifest, and checks the name section, which the
// engine decodes.
func (w *moduleWalk) customSection(at int) {
	w.m.CustomBytes += int64(w.left())
	if w.m.CustomBytes > w.lim.CustomBytes {
		w.refuse(overLimit(RuleCustomSections, at, "the module", uint64(w.m.CustomBytes), uint64(w.lim.CustomBytes),
			"bytes of custom sections"))
		return
	}
	name := w.name()
	if w.err != nil {
		return
	}
	switch string(name) {
	case abi.ManifestSection:
		w.manifest(at)
	case "name":
		w.nameSection()
	}
	w.pos = w.end
}

func (w *moduleWalk) manifest(at int) {
	size := w.left()
	switch {
	case w.manifests > 0:
		w.refuse(fault(RuleManifestDuplicate, at, "the section %s appears twice", abi.ManifestSection))
		return
	case int64(size) > w.lim.ManifestBytes:
		w.refuse(overLimit(RuleManifestBytes, at, "the manifest", uint64(size), uint64(w.lim.ManifestBytes), "bytes"))
		return
	}
	w.manifests++
	w.m.Manifest = bytes.Clone(w.b[w.pos:w.end])
	if w.m.Manifest == nil {
		w.m.Manifest = []byte{}
	}
}

// Subsections of the name section that the engine decodes.
const (
	namesModule    = 0
	namesFunctions = 1
	namesLocals    = 2
)

// nameSection checks counts and lengths by which the engine allocates memory. It skips other subsections.
func (w *moduleWalk) nameSection() {
	limit := w.end
	for w.pos < limit && w.err == nil {
		at := w.pos
		id, size := w.byte(), w.u32()
		if w.err != nil {
			break
		}
		if uint64(size) > uint64(w.left()) {
			w.refuse(fault(RuleNameSection, at, "subsection %d declares %d bytes and %d remain", id, size, w.left()))
			break
		}
		w.end = w.pos + int(size)
		switch id {
		case namesModule:
			w.name()
		case namesFunctions:
			w.nameMap()
		case namesLocals:
			for range w.count(RuleNameSection, "named functions", ^uint32(0), 2) {
				if w.err != nil {
					break
				}
				w.u32()
				w.nameMap()
			}
		default:
			w.pos = w.end
		}
		if w.err == nil && w.pos != w.end {
			w.refuse(fault(RuleNameSection, w.pos, "%d bytes follow the last entry of subsection %d", w.left(), id))
		}
		w.end = limit
	}
	w.end = limit
}

func (w *moduleWalk) nameMap() {
	for range w.count(RuleNameSection, "names", ^uint32(0), 2) {
		if w.err != nil {
			return
		}
		w.u32()
		w.name()
	}
}

// ErrNotModule means that bytes are not a header followed by sections that fill the rest.
var ErrNotModule = errors.New("not a WebAssembly module")

// EmbedManifest returns a copy of wasm with manifest as its only section sluice.manifest, at the end. Repeating it with
// the same manifest returns the same bytes. It checks the sections and the two size limits, but not the JSON.
func EmbedManifest(wasm, manifest []byte) ([]byte, error) {
	lim := HardModuleLimits()
	if int64(len(manifest)) > lim.ManifestBytes {
		return nil, overLimit(RuleManifestBytes, 0, "the manifest", uint64(len(manifest)), uint64(lim.ManifestBytes), "bytes")
	}
	if int64(len(wasm)) > lim.Bytes {
		return nil, overLimit(RuleModuleBytes, 0, "the module", uint64(len(wasm)), uint64(lim.Bytes), "bytes")
	}
	w := moduleWalk{moduleReader: moduleReader{b: wasm, end: len(wasm)}, lim: lim}
	if !w.header() {
		return nil, fmt.Errorf("embed manifest: %w: %w", ErrNotModule, w.err)
	}
	out := make([]byte, w.pos, len(wasm)+len(manifest)+32)
	copy(out, wasm)
	for w.pos < w.end {
		id, raw, content := w.moduleReader.nextSection()
		if w.err != nil {
			return nil, fmt.Errorf("embed manifest: %w: %w", ErrNotModule, w.err)
		}
		if id == sectionCustom && isManifestSection(content) {
			continue
		}
		out = append(out, raw...)
	}
	return appendManifest(out, manifest), nil
}

func isManifestSection(content []byte) bool {
	r := moduleReader{b: content, end: len(content)}
	return string(r.bytes(r.u32())) == abi.ManifestSection && r.err == nil
}

func appendManifest(out, manifest []byte) []byte {
	name := binary.AppendUvarint(nil, uint64(len(abi.ManifestSection)))
	name = append(name, abi.ManifestSection...)
	out = append(out, sectionCustom)
	out = binary.AppendUvarint(out, uint64(len(name)+len(manifest)))
	out = append(out, name...)
	return append(out, manifest...)
}
