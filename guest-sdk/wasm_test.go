//go:build !wasip1

package guest_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/tests/build"
)

// buildGuest compiles a program of testdata as connectors are compiled.
func buildGuest(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := build.Guest("guest-sdk/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// A wasmHost is the least that runs a module: wazero without a jail, and the
// imports of abi.Functions. It is for what this package must know of a wasm
// build; hosts are elsewhere.
type wasmHost struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	// call does one call. A nil one replies nothing to everything.
	call    func(call abi.Call, request []byte) (reply []byte, errno abi.Errno)
	pending []byte
}

func newWasmHost(t testing.TB, wasm []byte) *wasmHost {
	t.Helper()
	ctx := context.Background()
	h := &wasmHost{runtime: wazero.NewRuntime(ctx)}
	t.Cleanup(func() { _ = h.runtime.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, h.runtime)
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range abi.Functions {
		b := builders[f.Module]
		if b == nil {
			b = h.runtime.NewHostModuleBuilder(f.Module)
			builders[f.Module] = b
		}
		h.export(b, f)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if h.module, err = h.runtime.CompileModule(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *wasmHost) export(b wazero.HostModuleBuilder, f abi.Function) {
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	switch f.Call {
	case abi.CallReply:
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(h.reply), []api.ValueType{i32, i32},
			[]api.ValueType{i32}).Export(f.Name)
	case abi.CallRead:
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(refuse), []api.ValueType{i32, i32, i32},
			[]api.ValueType{i64}).Export(f.Name)
	case abi.CallClose:
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(refuse), []api.ValueType{i32},
			[]api.ValueType{i64}).Export(f.Name)
	default:
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			request, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
			if !ok {
				panic("pointer outside of memory")
			}
			reply, errno := h.call(f.Call, request)
			h.pending = reply
			stack[0] = uint64(len(reply))
			if errno != 0 {
				stack[0] = uint64(-int64(errno))
			}
		}), []api.ValueType{i32, i32}, []api.ValueType{i64}).Export(f.Name)
	}
}

func (h *wasmHost) reply(_ context.Context, m api.Module, stack []uint64) {
	n := min(uint32(len(h.pending)), uint32(stack[1]))
	if !m.Memory().Write(uint32(stack[0]), h.pending[:n]) {
		panic("pointer outside of memory")
	}
	h.pending = h.pending[n:]
	stack[0] = uint64(n)
}

func refuse(_ context.Context, _ api.Module, stack []uint64) {
	stack[0] = ^uint64(abi.ENOENT) + 1
}

// run executes the module once and returns its exit code.
func (h *wasmHost) run(t testing.TB, args ...string) uint32 {
	t.Helper()
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithSysNanotime().WithSysWalltime().WithStderr(os.Stderr)
	m, err := h.runtime.InstantiateModule(context.Background(), h.module, config)
	if m != nil {
		defer m.Close(context.Background())
	}
	if err == nil {
		return 0
	}
	exit, ok := err.(*sys.ExitError)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

const wasmStart = `{"run_id":"run_1","connection_id":"c","connector_id":"c","collection_mode":"full_refresh",
 "scope":{"streams":[{"name":"messages"}]},"state":null,"bindings":{"network":{"hosts":[]},"filesystem":{"mounts":[]}},
 "detail_gaps":[],"abi":{"major":1,"minor":0}}`

// TestEmptyConnector: a connector that does nothing imports nothing that would let it do
// something, and none grows over 3.5 MB by the SDK alone.
func TestEmptyConnector(t *testing.T) {
	wasm := buildGuest(t, "empty")
	t.Logf("%d bytes", len(wasm))
	if len(wasm) > 3_500_000 {
		t.Errorf("an empty connector has %d bytes, the contract allows 3.5 MB", len(wasm))
	}
	h := newWasmHost(t, wasm)
	var got []string
	for _, f := range h.module.ImportedFunctions() {
		if module, name, _ := f.Import(); module != abi.ModuleWASI {
			got = append(got, module+"."+name)
		}
	}
	slices.Sort(got)
	want := []string{"sluice_v1.done", "sluice_v1.emit", "sluice_v1.log", "sluice_v1.reply", "sluice_v1.start"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if h.module.ExportedMemories()["memory"] == nil || h.module.ExportedFunctions()["_start"] == nil {
		t.Error("memory or _start is not exported")
	}
}

// TestProbe goes through the imports of a wasm build: replies in pieces, error
// texts, cancellation, exit codes.
func TestProbe(t *testing.T) {
	h := newWasmHost(t, buildGuest(t, "probe"))
	for _, c := range []struct {
		arg   string
		errno abi.Errno
		text  string
		exit  uint32
		want  []string
	}{
		{"all", 0, "", 0, []string{
			"start", `interact {"request_id":"otp-1","kind":"otp","message":"Code?"}`,
			`emit {"id":"1","text":"424242"} {"id":"2"}`, `checkpoint {"stream":"messages","cursor":{"after":"2","large":"` +
				strings.Repeat("x", 100_000) + `"}}`,
			`done {"status":"succeeded","records_emitted":2}`}},
		{"panic", 0, "", 1, []string{"start", "log",
			`done {"status":"failed","records_emitted":0,"error":{"message":"panic: as told at probe/main.go:35","code":"panic","retryable":false}}`}},
		{"refused", abi.EBUSY, `{"code":"c","message":"m","detail":{"d":1}}`, 1, []string{"start", `progress {"message":"p"}`,
			`done {"status":"failed","records_emitted":0,"error":{"message":"c|m|{\"d\":1}|true","code":"refused","retryable":true,"recovery_hint":{"action":"retry_by_runtime"}}}`}},
		{"refused", abi.EBUSY, "no JSON", 1, []string{"start", `progress {"message":"p"}`,
			`done {"status":"failed","records_emitted":0,"error":{"message":"|||true","code":"refused","retryable":true,"recovery_hint":{"action":"retry_by_runtime"}}}`}},
		{"cancelled", abi.ECANCELED, "", 1,
			[]string{"start", `progress {"message":"p"}`, `done {"status":"cancelled","records_emitted":0}`}},
		{"violated", abi.EPROTO, "", 1, []string{"start", `progress {"message":"p"}`}},
	} {
		var got []string
		h.call = func(call abi.Call, request []byte) ([]byte, abi.Errno) {
			got = append(got, called(t, call, request))
			switch call {
			case abi.CallStart:
				return []byte(strings.Replace(wasmStart, `"network"`, `"interactive":{},"network"`, 1) +
					strings.Repeat(" ", 100_000)), 0
			case abi.CallInteract:
				return []byte(`{"request_id":"otp-1","status":"success","data":{"code":"424242"}}`), 0
			case abi.CallProgress:
				return []byte(c.text), c.errno
			}
			return nil, 0
		}
		if exit := h.run(t, "probe", c.arg); exit != c.exit {
			t.Errorf("%s: exit %d, want %d", c.arg, exit, c.exit)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.arg, diff)
		}
	}
}

// called is a call as text: the records of a frame, no stack of a log line.
func called(t *testing.T, call abi.Call, request []byte) string {
	t.Helper()
	i := slices.IndexFunc(abi.Functions, func(f abi.Function) bool { return f.Call == call })
	name := abi.Functions[i].Name
	switch {
	case call == abi.CallLog || len(request) == 0:
		return name
	case call != abi.CallEmit:
		return name + " " + string(request)
	}
	frame, err := abi.NewFrameReader(request)
	if err != nil {
		t.Fatal(err)
	}
	var rec abi.FrameRecord
	for frame.Next(&rec) {
		name += " " + string(rec.Data)
	}
	return name
}
