//go:build unix

package bench

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// inProcessRate ingests n records from a guest in this process: the rate of a host that
// trusted its engine.
func inProcessRate(b *testing.B, h *app.Host, l *app.Loaded, n int) float64 {
	b.Helper()
	plan, err := run.Prepare(context.Background(), h.Store, run.Input{
		Connector: l.Connector, Manifest: l.Manifest,
		Connection: store.Connection{ID: "in-process", ConnectorID: l.Connector.ID, Enabled: true,
			Settings: configOf("builder", n, 0)},
		Transport: "abi", UsesABI: true, Trigger: "manual", Attempt: 1,
		Kinds: app.Kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
	})
	if err != nil {
		b.Fatal(err)
	}
	g, err := newInProcess(l.Wasm)
	if err != nil {
		b.Fatal(err)
	}
	r := run.New(plan, run.Deps{
		Store: h.Store, HostID: h.ID, BootEpoch: h.Epoch,
		Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return g, nil, nil },
	})
	took, _ := finish(b, r, int64(n))
	return rate(n, took)
}

// inProcess is a guest whose calls are channel operations. Its frames are credited like
// a worker's: four may be in flight.
type inProcess struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
	cancel  context.CancelFunc
	pending []byte // of sluice_v1.reply
	id      uint32

	calls   chan sandbox.Inbound
	replies chan answer
	credit  chan struct{}
	exit    atomic.Pointer[sandbox.Exit]
}

type answer struct {
	errno   abi.Errno
	payload []byte
}

const creditFrames = 4

// newInProcess compiles the module, which is not part of any run.
func newInProcess(wasm []byte) (*inProcess, error) {
	ctx := context.Background()
	g := &inProcess{
		runtime: wazero.NewRuntime(ctx), calls: make(chan sandbox.Inbound, creditFrames),
		replies: make(chan answer, 1), credit: make(chan struct{}, creditFrames),
	}
	for range creditFrames {
		g.credit <- struct{}{}
	}
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range abi.Functions {
		m := builders[f.Module]
		if m == nil {
			m = g.runtime.NewHostModuleBuilder(f.Module)
			builders[f.Module] = m
		}
		var types [2][]api.ValueType
		side := 0
		for _, letter := range f.Signature() {
			switch letter {
			case '>':
				side = 1
			case 'i':
				types[side] = append(types[side], api.ValueTypeI32)
			case 'I':
				types[side] = append(types[side], api.ValueTypeI64)
			}
		}
		m.NewFunctionBuilder().WithGoModuleFunction(g.function(f.Call), types[0], types[1]).Export(f.Name)
	}
	for _, m := range builders {
		if _, err := m.Instantiate(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, g.runtime); err != nil {
		return nil, err
	}
	var err error
	g.code, err = g.runtime.CompileModule(ctx, wasm)
	return g, err
}

func (g *inProcess) function(c abi.Call) api.GoModuleFunc {
	return func(_ context.Context, mod api.Module, stack []uint64) {
		b, ok := mod.Memory().Read(uint32(stack[0]), uint32(stack[1]))
		switch {
		case !ok:
			stack[0] = failure(abi.EFAULT)
		case c == abi.CallReply:
			n := copy(b, g.pending)
			g.pending = g.pending[n:]
			stack[0] = uint64(n)
		case c == abi.CallEmit:
			<-g.credit
			g.send(c, b)
			stack[0] = 0
		default:
			g.send(c, b)
			a := <-g.replies
			g.pending = a.payload
			if stack[0] = uint64(len(a.payload)); a.errno != abi.OK {
				stack[0] = failure(a.errno)
			}
		}
	}
}

// failure returns an errno as a negative number, on the engine's stack.
func failure(e abi.Errno) uint64 { return uint64(-int64(e)) }

func (g *inProcess) send(c abi.Call, payload []byte) {
	g.id++
	g.calls <- sandbox.Inbound{ID: g.id, Call: c, Payload: bytes.Clone(payload)}
}

func (g *inProcess) Go() error {
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	go func() {
		defer close(g.calls)
		defer g.runtime.Close(context.Background())
		_, err := g.runtime.InstantiateModule(ctx, g.code, wazero.NewModuleConfig().WithSysWalltime().WithSysNanotime())
		end := sandbox.Exit{Kind: sandbox.ExitExited}
		var exit *sys.ExitError
		switch {
		case errors.As(err, &exit):
			end.Code = exit.ExitCode()
		case err != nil:
			end.Kind, end.Detail = sandbox.ExitTrapped, err.Error()
		}
		g.exit.Store(&end)
	}()
	return nil
}

func (g *inProcess) Calls() <-chan sandbox.Inbound { return g.calls }

func (g *inProcess) Reply(_ uint32, errno abi.Errno, payload []byte) error {
	g.replies <- answer{errno, bytes.Clone(payload)}
	return nil
}

func (g *inProcess) Credit(frames, _ int) error {
	for range frames {
		g.credit <- struct{}{}
	}
	return nil
}

func (g *inProcess) Kill()                        { g.cancel() }
func (g *inProcess) Usage() sandbox.Usage         { return sandbox.Usage{} }
func (g *inProcess) Exit() sandbox.Exit           { return *g.exit.Load() }
func (g *inProcess) Isolation() sandbox.Isolation { return sandbox.Isolation{} }
