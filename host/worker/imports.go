package worker

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sluicehost/sluice/abi"
)

// instantiateImports gives the runtime everything a guest can import, and this
// page is all of it (invariant 10): the functions of abi.Functions, and WASI
// preview 1 with the changes of wasi.go. It compiles trampolines and therefore
// runs before the jail is sealed (S17).
func (g *guest) instantiateImports(ctx context.Context, r wazero.Runtime) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range abi.Functions {
		b := builders[f.Module]
		if b == nil {
			b = r.NewHostModuleBuilder(f.Module)
			builders[f.Module] = b
		}
		params, results := wasmTypes(f.Signature())
		b.NewFunctionBuilder().WithGoModuleFunction(g.function(f.Call), params, results).Export(f.Name)
	}
	for _, name := range []string{abi.ModuleCore, abi.ModuleNetwork, abi.ModuleBrowser} {
		if _, err := builders[name].Instantiate(ctx); err != nil {
			return fmt.Errorf("provide %s: %w", name, err)
		}
	}
	return g.instantiateWASI(ctx, r)
}

// function returns the handler of one function of abi.Functions.
func (g *guest) function(c abi.Call) api.GoModuleFunc {
	switch c {
	case abi.CallReply:
		return g.reply
	case abi.CallRead:
		return g.read
	case abi.CallClose:
		return g.close
	case abi.CallEmit:
		return g.emit
	default:
		return func(_ context.Context, mod api.Module, stack []uint64) {
			stack[0] = g.relayed(mod.Memory(), c, stack[0], stack[1])
		}
	}
}

// wasmTypes translates a signature such as "ii>I".
func wasmTypes(signature string) (params, results []api.ValueType) {
	into := &params
	for _, letter := range signature {
		switch letter {
		case '>':
			into = &results
		case 'i':
			*into = append(*into, api.ValueTypeI32)
		case 'I':
			*into = append(*into, api.ValueTypeI64)
		}
	}
	return params, results
}
