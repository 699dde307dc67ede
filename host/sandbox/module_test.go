package sandbox_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/tests/build"
)

func TestCheckModuleAccepts(t *testing.T) {
	tests := []struct {
		name string
		wasm []byte
	}{
		{"the smallest connector", minimal().bytes()},
		{"every form of element segment", minimal().with(4, vec([]byte{0x70, 0, 4})).with(9, vec(
			[]byte{0, 0x41, 0, 0x0b, 1, 0}, []byte{1, 0, 1, 0}, []byte{2, 0, 0x41, 0, 0x0b, 0, 1, 0}, []byte{3, 0, 1, 0},
			[]byte{4, 0x41, 0, 0x0b, 1, 0xd2, 0, 0x0b}, []byte{5, 0x70, 1, 0xd0, 0x70, 0x0b},
			[]byte{6, 0, 0x41, 0, 0x0b, 0x70, 1, 0xd2, 0, 0x0b}, []byte{7, 0x6f, 1, 0xd0, 0x6f, 0x0b})).bytes()},
		{"every form of data segment", minimal().with(12, []byte{3}).with(11, vec(
			[]byte{0, 0x41, 0, 0x0b, 1, 'a'}, []byte{1, 1, 'b'}, []byte{2, 0, 0x41, 1, 0x0b, 1, 'c'})).bytes()},
		{"every constant", minimal().with(6, vec([]byte{0x7f, 0, 0x41, 0x7f, 0x0b}, []byte{0x7e, 1, 0x42, 0x7f, 0x0b},
			[]byte{0x7d, 0, 0x43, 0, 0, 0, 0, 0x0b}, join([]byte{0x7c, 0, 0x44}, make([]byte, 8), []byte{0x0b}),
			join([]byte{0x7b, 0, 0xfd, 0x0c}, make([]byte, 16), []byte{0x0b}), []byte{0x70, 0, 0xd2, 0, 0x0b})).bytes()},
		{"the most locals", minimal().code(join([]byte{1}, uleb(50_000), []byte{0x7f, 0x0b})...).bytes()},
		{"the deepest nesting", minimal().code(join([]byte{0}, nested(4_096))...).bytes()},
		{"numbers at their longest", minimal().code(0, 0x41, 0x80, 0x80, 0x80, 0x80, 0x78, 0x1a,
			0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x1a, 0x0b).bytes()},
		{"a start section", minimal().with(8, []byte{0}).bytes()},
		{"a table without maximum", minimal().with(4, vec([]byte{0x70, 0, 1})).bytes()},
		{"bulk memory and vectors", minimal().code(join([]byte{0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x0a, 0, 0, // memory.copy
			0x41, 0, 0xfd, 0x00, 0x04, 0x00, 0x1a, // v128.load
			0xfd, 0x0c}, make([]byte, 16), []byte{0xfd, 0xe0, 0x01, 0x1a, 0x0b})...).bytes()}, // v128.const, f32x4.abs
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := sandbox.CheckModule(tt.wasm, sandbox.ModuleLimits{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func nested(depth int) []byte {
	return []byte(strings.Repeat("\x02\x40", depth) + strings.Repeat("\x0b", depth+1))
}

func TestCheckModuleReports(t *testing.T) {
	wasm := minimal().
		with(1, vec([]byte{0x60, 0, 0}, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7e})).
		with(2, vec(imported("sluice_v1", "emit", 0, 1), imported("sluice_v1_network", "request", 0, 1))).
		with(5, vec([]byte{1, 3, 17})).
		with(7, vec(export("memory", 2, 0), export("_start", 0, 2))).
		with(11, vec([]byte{1, 3, 1, 2, 3})).
		then(0, custom("sluice.manifest", '{', '}')).bytes()
	m, err := sandbox.CheckModule(wasm, sandbox.DefaultModuleLimits())
	if err != nil {
		t.Fatal(err)
	}
	const manifest = 1 + 1 + 1 + len("sluice.manifest") + len("{}")
	want := sandbox.Module{
		Digest:    fmt.Sprintf("sha256:%x", sha256.Sum256(wasm)),
		Compiled:  fmt.Sprintf("sha256:%x", sha256.Sum256(wasm[:len(wasm)-manifest])),
		Size:      int64(len(wasm)),
		Transport: sandbox.TransportABI,
		Imports:   []sandbox.Import{{Module: "sluice_v1", Name: "emit"}, {Module: "sluice_v1_network", Name: "request"}},
		Manifest:  []byte("{}"),
		MemoryMin: 3, MemoryMax: 17,
		CodeBytes: 4, DataBytes: 3, CustomBytes: 18, MaxBody: 2,
		Functions: 1, DataSegments: 1,
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	clear(wasm)
	if string(m.Manifest) != "{}" {
		t.Error("the manifest is part of the caller's bytes")
	}
}

// Reply, read, close, network and browser alone make no ABI connector.
func TestTransport(t *testing.T) {
	for _, f := range abi.Functions {
		wasm := minimal().with(1, vec([]byte{0x60, 0, 0}, typeOf(f.Signature()))).
			with(2, vec(imported(f.Module, f.Name, 0, 1))).
			with(7, vec(export("memory", 2, 0), export("_start", 0, 1))).bytes()
		m, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
		if err != nil {
			t.Errorf("%s.%s: %v", f.Module, f.Name, err)
			continue
		}
		if (m.Transport == sandbox.TransportABI) != f.Message {
			t.Errorf("%s.%s makes a connector of transport %s", f.Module, f.Name, m.Transport)
		}
		if !m.Uses(f.Module) || m.Uses("sluice_v2") {
			t.Errorf("%s.%s: Uses is wrong", f.Module, f.Name)
		}
	}
}

// typeOf encodes a signature written as in abi.Function.Signature.
func typeOf(signature string) []byte {
	in, out, _ := strings.Cut(signature, ">")
	code := strings.NewReplacer("i", "\x7f", "I", "\x7e")
	return join([]byte{0x60}, sized([]byte(code.Replace(in))), sized([]byte(code.Replace(out))))
}

// What the standard toolchain makes passes, here the host's own compiler.
func TestCheckModuleAcceptsGo(t *testing.T) {
	wasm := goGuest(t)
	m, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Transport != sandbox.TransportStdio || !m.Uses(abi.ModuleWASI) || m.MemoryMin == 0 || m.CodeBytes < 1<<19 {
		t.Errorf("unexpected report: %+v", m)
	}
}

// goGuest is a small program for wasip1.
func goGuest(tb testing.TB) []byte {
	tb.Helper()
	wasm, err := build.Guest("host/sandbox/testdata/lines")
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

func TestModuleLimits(t *testing.T) {
	def := sandbox.DefaultModuleLimits()
	if diff := cmp.Diff(def, sandbox.ModuleLimits{}.Effective()); diff != "" {
		t.Errorf("defaults: %s", diff)
	}
	high := sandbox.ModuleLimits{Bytes: 1 << 40, Nesting: 1 << 30, Types: 5}
	if got := high.Effective(); got.Bytes != 64<<20 || got.Nesting != 4_096 || got.Types != 5 {
		t.Errorf("limits above their maximum became %+v", got)
	}
}

func TestRefusedImportIsAnEscapeAttempt(t *testing.T) {
	tests := []struct{ module, name, kind string }{
		{"wasi_snapshot_preview1", "path_open_any", "host-fs-escape"},
		{"wasi_snapshot_preview1", "proc_raise", "host-process-escape"},
		{"wasi_snapshot_preview1", "sock_connect", "network-escape"},
		{"wasi_unstable", "environ_all", "host-env-leak"},
		{"sluice_v2", "emit", "other"},
		{"env", "abort", "other"},
	}
	for _, tt := range tests {
		_, err := sandbox.CheckModule(minimal().with(2, vec(imported(tt.module, tt.name, 0, 0))).bytes(),
			sandbox.ModuleLimits{})
		var refused *sandbox.ModuleError
		if !errors.As(err, &refused) {
			t.Errorf("%s.%s passed", tt.module, tt.name)
			continue
		}
		if refused.Code() != sandbox.CodeEscapeAttempt || refused.Import != tt.module+"."+tt.name ||
			refused.EscapeKind() != tt.kind {
			t.Errorf("%s.%s: %s %s %s", tt.module, tt.name, refused.Code(), refused.Import, refused.EscapeKind())
		}
	}
	_, err := sandbox.CheckModule(nil, sandbox.ModuleLimits{})
	var refused *sandbox.ModuleError
	if !errors.As(err, &refused) || refused.Code() != sandbox.CodeModuleInvalid || refused.EscapeKind() != "" {
		t.Errorf("an empty file is %v", err)
	}
}
