package sandbox_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/sluicehost/sluice/host/sandbox"
)

// walkBudget is what a walk may allocate besides the manifest it copies: the
// types (10,000 of 16 bytes, grown by doubling), 256 imports, one error.
const walkBudget = 1 << 20

// FuzzCheckModule: no input panics, allocates by a count it declares, or
// passes with a report that contradicts the limits.
func FuzzCheckModule(f *testing.F) {
	for _, tt := range refusals {
		if wasm := tt.wasm(); len(wasm) < 4<<10 {
			f.Add(wasm)
		}
	}
	f.Add(minimal().bytes())
	f.Add(minimal().with(1, vec([]byte{0x60, 0, 0}, typeOf("ii>I"))).with(2, vec(imported("sluice_v1", "emit", 0, 1))).
		with(7, vec(export("memory", 2, 0), export("_start", 0, 1))).then(0, custom("sluice.manifest", '{', '}')).bytes())
	lim := sandbox.DefaultModuleLimits()
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := sandbox.CheckModule(wasm, lim)
		if err != nil {
			var refused *sandbox.ModuleError
			if !errors.As(err, &refused) || refused.Rule == "" || refused.Offset < 0 || refused.Offset > int64(len(wasm)) {
				t.Fatalf("refusal %#v", err)
			}
			return
		}
		if m.MemoryMin > m.MemoryMax || m.MaxNesting > int(lim.Nesting) || len(m.Imports) > int(lim.Imports) ||
			m.CodeBytes+m.DataBytes+m.CustomBytes > m.Size || int64(len(m.Manifest)) > lim.ManifestBytes {
			t.Fatalf("report %+v", m)
		}
		again, err := sandbox.EmbedManifest(wasm, []byte(`{"v":1}`))
		if err != nil {
			t.Fatalf("an accepted module takes no manifest: %v", err)
		}
		if m, err := sandbox.CheckModule(again, lim); err != nil || string(m.Manifest) != `{"v":1}` {
			t.Fatalf("with a manifest: %v", err)
		}
	})
}

// Counts cost nothing until their entries are there.
func TestCheckModuleAllocation(t *testing.T) {
	for _, tt := range refusals {
		wasm := tt.wasm()
		if got := allocated(func() { sandbox.CheckModule(wasm, tt.lim) }); got > walkBudget {
			t.Errorf("%s: %d bytes allocated for a module of %d", tt.name, got, len(wasm))
		}
	}
	guest := goGuest(t)
	if got := allocated(func() { sandbox.CheckModule(guest, sandbox.ModuleLimits{}) }); got > walkBudget {
		t.Errorf("a Go guest: %d bytes allocated", got)
	}
}

// allocated measures f alone as far as the runtime allows: what other
// goroutines allocate meanwhile counts too, so it takes the least of three.
func allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// Every prefix and every single flipped bit of a module ends in a report or a
// refusal.
func TestCheckModuleDamaged(t *testing.T) {
	wasm := minimal().with(4, vec([]byte{0x70, 0, 4})).with(6, vec([]byte{0x7f, 0, 0x41, 0, 0x0b})).
		with(9, vec([]byte{0, 0x41, 0, 0x0b, 1, 0})).with(11, vec([]byte{1, 1, 'b'})).bytes()
	for n := range wasm {
		sandbox.CheckModule(wasm[:n], sandbox.ModuleLimits{})
		for bit := range 8 {
			damaged := bytes.Clone(wasm)
			damaged[n] ^= 1 << bit
			m, err := sandbox.CheckModule(damaged, sandbox.ModuleLimits{})
			if err == nil && m.Size != int64(len(damaged)) {
				t.Errorf("byte %d, bit %d: report %+v", n, bit, m)
			}
		}
	}
	if _, err := sandbox.CheckModule(wasm[:len(wasm)-1], sandbox.ModuleLimits{}); err == nil {
		t.Error("a module without its last byte passed")
	}
}

func BenchmarkCheckModule(b *testing.B) {
	wasm := goGuest(b)
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{}); err != nil {
			b.Fatal(err)
		}
	}
}
