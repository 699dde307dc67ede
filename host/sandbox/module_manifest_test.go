package sandbox_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sluicehost/sluice/host/sandbox"
)

func TestEmbedManifest(t *testing.T) {
	plain := minimal().then(0, custom("producers", 1, 2)).bytes()
	once := embed(t, plain, `{"a":1}`)
	if got := manifestOf(t, once); got != `{"a":1}` {
		t.Errorf("manifest %q", got)
	}
	twice := embed(t, once, `{"b":2}`)
	if got := manifestOf(t, twice); got != `{"b":2}` {
		t.Errorf("replaced manifest %q", got)
	}
	if again := embed(t, twice, `{"a":1}`); !bytes.Equal(again, once) {
		t.Error("embedding is not reproducible")
	}
	if !bytes.HasPrefix(once, plain) {
		t.Error("other sections changed")
	}
}

// A manifest that a module carries twice is refused, and embedding repairs it.
func TestEmbedManifestReplacesAll(t *testing.T) {
	double := minimal().then(0, custom("sluice.manifest", 'x')).then(0, custom("sluice.manifest", 'y')).bytes()
	if got := manifestOf(t, embed(t, double, "{}")); got != "{}" {
		t.Errorf("manifest %q", got)
	}
}

func TestEmbedManifestRefuses(t *testing.T) {
	for _, wasm := range [][]byte{nil, []byte("\x7fELF"), append(minimal().bytes(), 1), append(minimal().bytes(), 0, 9)} {
		if _, err := sandbox.EmbedManifest(wasm, []byte("{}")); !errors.Is(err, sandbox.ErrNotModule) {
			t.Errorf("EmbedManifest(%d bytes) = %v, want ErrNotModule", len(wasm), err)
		}
	}
	var refused *sandbox.ModuleError
	_, err := sandbox.EmbedManifest(minimal().bytes(), make([]byte, 256<<10+1))
	if !errors.As(err, &refused) || refused.Rule != sandbox.RuleManifestBytes {
		t.Errorf("a long manifest: %v", err)
	}
}

func embed(t *testing.T, wasm []byte, manifest string) []byte {
	t.Helper()
	out, err := sandbox.EmbedManifest(wasm, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func manifestOf(t *testing.T, wasm []byte) string {
	t.Helper()
	m, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Manifest)
}
