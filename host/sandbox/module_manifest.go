package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
)

// ErrNotModule says that bytes do not have the frame of a module: a header and
// sections that fill the rest.
var ErrNotModule = errors.New("not a WebAssembly module")

// EmbedManifest returns a copy of wasm whose only section sluice.manifest is
// manifest, at the end (G2). Doing it again with the same manifest gives the
// same bytes. It checks the frame of the module and the two size limits, not
// the JSON: that is for whoever builds.
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
		start := w.pos
		id := w.byte()
		content := w.bytes(w.u32())
		if w.err != nil {
			return nil, fmt.Errorf("embed manifest: %w: %w", ErrNotModule, w.err)
		}
		if id == sectionCustom && isManifestSection(content) {
			continue
		}
		out = append(out, wasm[start:w.pos]...)
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
