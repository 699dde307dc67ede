//go:build !wasip1

package guesthttp_test

import (
	"context"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/tests/build"
)

// An echoHost is the least that runs testdata/fetch: wazero without a jail, and
// a network where the answer is the question.
type echoHost struct {
	pending []byte
	head    string
	body    []byte
	done    string
	closes  int
}

// call does one call and returns the length of the reply, which is pending.
func (h *echoHost) call(c abi.Call, request string) int {
	h.pending = nil
	switch c {
	case abi.CallStart:
		h.pending = []byte(`{"run_id":"r","connection_id":"c","connector_id":"c","collection_mode":"full_refresh","scope":{"streams":[]},
		 "state":null,"bindings":{"network":{"hosts":["h.example"]}},"detail_gaps":[],"abi":{"major":1,"minor":0}}`)
	case abi.CallNetworkExchange:
		_, asked, err := abi.ParseExchange([]byte(request))
		if err != nil || len(asked) != 1 {
			panic("no request")
		}
		frame := asked[0].Frame
		n := 4 + binary.LittleEndian.Uint32(frame)
		h.head, h.body = string(frame[4:n]), frame[n:]
		h.pending = abi.ExchangeResponse{ID: asked[0].ID, Reply: []byte(ok)}.Append(nil)
	case abi.CallClose:
		h.closes++
	case abi.CallDone:
		h.done = request
	}
	return len(h.pending)
}

// take copies what fits of b into the guest and drops it.
func take(m api.Module, b *[]byte, ptr, size uint64) uint64 {
	n := min(len(*b), int(uint32(size)))
	if !m.Memory().Write(uint32(ptr), (*b)[:n]) {
		panic("pointer outside of memory")
	}
	*b = (*b)[n:]
	return uint64(n)
}

func (h *echoHost) serve(f abi.Function) (api.GoModuleFunc, int, api.ValueType) {
	switch f.Call {
	case abi.CallReply:
		return func(_ context.Context, m api.Module, s []uint64) { s[0] = take(m, &h.pending, s[0], s[1]) }, 2,
			api.ValueTypeI32
	case abi.CallRead:
		return func(_ context.Context, m api.Module, s []uint64) { s[0] = take(m, &h.body, s[1], s[2]) }, 3, api.ValueTypeI64
	case abi.CallClose:
		return func(_ context.Context, _ api.Module, s []uint64) { s[0] = uint64(h.call(f.Call, "")) }, 1, api.ValueTypeI64
	}
	return func(_ context.Context, m api.Module, s []uint64) {
		request, ok := m.Memory().Read(uint32(s[0]), uint32(s[1]))
		if !ok {
			panic("pointer outside of memory")
		}
		s[0] = uint64(h.call(f.Call, string(request)))
	}, 2, api.ValueTypeI64
}

// TestWasm: a guest compiled as connectors are, with a library's http.Client and
// its timeout, gets its answer through the imports.
func TestWasm(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles net/http for wasm")
	}
	wasm, err := build.Guest("guest-sdk/guesthttp/testdata/fetch")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter()) // starts sooner than it compiles
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	h := &echoHost{}
	modules := map[string]wazero.HostModuleBuilder{}
	for _, f := range abi.Functions {
		if modules[f.Module] == nil {
			modules[f.Module] = r.NewHostModuleBuilder(f.Module)
		}
		serve, params, result := h.serve(f)
		types := []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}[:params]
		modules[f.Module].NewFunctionBuilder().WithGoModuleFunction(serve, types, []api.ValueType{result}).Export(f.Name)
	}
	for _, m := range modules {
		if _, err := m.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	config := wazero.NewModuleConfig().WithSysNanotime().WithSysWalltime().WithStderr(os.Stderr)
	if _, err := r.InstantiateWithConfig(ctx, wasm, config); err != nil {
		if !strings.Contains(err.Error(), "exit_code(0)") {
			t.Error(err)
		}
	}
	if want := `{"status":"succeeded","records_emitted":0}`; h.done != want || h.closes != 1 {
		t.Errorf("done %s, %d closes", h.done, h.closes)
	}
	if !strings.HasPrefix(h.head,
		`{"method":"POST","url":"https://h.example/echo","headers":[["Content-Type","text/plain"]],"redirect":"manual","inline_bytes":65536,"timeout_ms":`) {
		t.Errorf("head %s", h.head)
	}
	t.Logf("%d bytes", len(wasm))
}
