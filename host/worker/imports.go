package worker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sluicehost/sluice/abi"
)

// instantiateImports defines everything that a guest can import: the functions of
// abi.Functions, and WASI preview 1 with the changes in wasi.go. It compiles trampolines
// and so must run before the jail is sealed.
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
	names := []string{abi.ModuleCore}
	for _, b := range abi.BindingModules {
		names = append(names, b.Module)
	}
	for _, name := range names {
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
			stack[0] = g.forward(mod.Memory(), c, stack[0], stack[1])
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

// A guest is the state of the only guest instance, for its imports.
type guest struct {
	relay      *relay
	clock      clock
	random     io.Reader
	skipSleeps bool // sleeps return at once
	stdio      bool
	input      []byte // read ahead from fd 0
	line       []byte // the last, incomplete line on fd 1 of a stdio connector; shorter than MaxStdoutChunk
}

// failed64 and failed32 return a negated errno as an i64 or i32 on wazero's stack.
func failed64(e abi.Errno) uint64 { return uint64(-int64(e)) }
func failed32(e abi.Errno) uint64 { return uint64(uint32(-int32(e))) }

// view returns length bytes of guest memory at ptr, or false if they are not all inside.
// The engine adds in 64 bits.
func view(mem api.Memory, ptr, length uint64) ([]byte, bool) {
	return mem.Read(uint32(ptr), uint32(length))
}

// request checks the argument of a call before a byte of it is copied.
func (g *guest) request(mem api.Memory, c abi.Call, ptr, length uint64) ([]byte, abi.Errno) {
	b, ok := view(mem, ptr, length)
	if !ok {
		g.fault(c, abi.FaultPointer, uint64(uint32(length)))
		return nil, abi.EFAULT
	}
	if !g.relay.link.limits.Oversize(c, uint64(len(b))) {
		return b, abi.OK
	}
	if c.IsMessage() {
		return nil, g.fault(c, abi.FaultTooBig, uint64(len(b)))
	}
	most, _ := g.relay.link.limits.FromWorker(c)
	g.relay.pending = errorText(abi.ETOOBIG, fmt.Sprintf("the request has %d bytes, the limit is %d", len(b), most))
	return nil, abi.ETOOBIG
}

// fault reports an invalid request to the host, which ends the run.
func (g *guest) fault(c abi.Call, kind abi.FaultKind, length uint64) abi.Errno {
	f := abi.RequestFault{Call: c, Kind: kind, Length: length}
	reply, errno := g.relay.call(abi.CallFault, f.Append(nil))
	g.relay.pending = reply
	if errno == abi.OK {
		errno = abi.EPROTO // no host of this build replies with OK
	}
	return errno
}

// forward handles all functions of the common type: it sends the request to the host and
// keeps the reply as the pending reply.
func (g *guest) forward(mem api.Memory, c abi.Call, ptr, length uint64) uint64 {
	g.relay.pending = nil
	b, errno := g.request(mem, c, ptr, length)
	if errno != abi.OK {
		return failed64(errno)
	}
	reply, errno := g.relay.call(c, b)
	g.relay.pending = reply
	if errno != abi.OK {
		return failed64(errno)
	}
	return uint64(len(reply))
}

// emit queues a frame and returns, waiting only for credit.
func (g *guest) emit(_ context.Context, mod api.Module, stack []uint64) {
	g.relay.pending = nil
	b, errno := g.request(mod.Memory(), abi.CallEmit, stack[0], stack[1])
	if errno == abi.OK {
		errno = g.relay.emit(b)
	}
	stack[0] = failed64(errno)
}

// reply copies the pending reply to the guest. Only an invalid pointer involves the host.
func (g *guest) reply(_ context.Context, mod api.Module, stack []uint64) {
	dst, ok := view(mod.Memory(), stack[0], stack[1])
	if !ok {
		g.fault(abi.CallReply, abi.FaultPointer, uint64(uint32(stack[1])))
		stack[0] = failed32(abi.EFAULT)
		return
	}
	n := copy(dst, g.relay.pending)
	g.relay.pending = g.relay.pending[n:]
	stack[0] = uint64(uint32(n))
}

// read reads from a host handle directly into guest memory.
func (g *guest) read(_ context.Context, mod api.Module, stack []uint64) {
	g.relay.pending = nil
	dst, ok := view(mod.Memory(), stack[1], stack[2])
	if !ok {
		g.fault(abi.CallRead, abi.FaultPointer, uint64(uint32(stack[2])))
		stack[0] = failed64(abi.EFAULT)
		return
	}
	var request [8]byte
	most := min(len(dst), abi.MaxReadChunk)
	reply, errno := g.relay.callInto(abi.CallRead, abi.AppendRead(request[:0], uint32(stack[0]), uint32(most)), dst[:most])
	if errno != abi.OK {
		g.relay.pending = reply
		stack[0] = failed64(errno)
		return
	}
	if len(reply) > most {
		g.relay.onLost(fmt.Errorf("%w: %d bytes read, asked for %d", abi.ErrWire, len(reply), most))
	}
	stack[0] = uint64(len(reply)) // already in place
}

// close releases a handle.
func (g *guest) close(_ context.Context, _ api.Module, stack []uint64) {
	var request [4]byte
	binary.LittleEndian.PutUint32(request[:], uint32(stack[0]))
	reply, errno := g.relay.call(abi.CallClose, request[:])
	g.relay.pending = reply
	stack[0] = failed64(errno)
}

// errorText returns the error text of a call that this process refuses.
func errorText(e abi.Errno, message string) []byte {
	text, err := json.Marshal(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{e.String(), message})
	if err != nil {
		return nil
	}
	return text
}
