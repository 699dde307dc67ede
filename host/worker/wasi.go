package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sluicehost/sluice/abi"
)

// The WASI errnos that this package returns itself.
const (
	wasiOK       = 0
	wasiAcces    = 2
	wasiCanceled = 11
	wasiFault    = 21
	wasiFbig     = 22
	wasiInval    = 28
	wasiIO       = 29
	wasiNoent    = 44
	wasiNospc    = 51
	wasiNotsup   = 58
)

// instantiateWASI provides WASI preview 1 with the engine's functions, some of which it replaces. File descriptors are
// the engine's; what they refer to is implemented here (stdio.go and the virtual file system). poll_oneoff sleeps by a
// call to the host. Sockets are not supported.
func (g *guest) instantiateWASI(ctx context.Context, r wazero.Runtime) error {
	builder := r.NewHostModuleBuilder(abi.ModuleWASI)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(builder)
	original, err := builder.Compile(ctx)
	if err != nil {
		return fmt.Errorf("provide %s: %w", abi.ModuleWASI, err)
	}
	ours := map[string]api.GoModuleFunc{
		"poll_oneoff":   g.pollOneoff,
		"sock_accept":   notSupported,
		"sock_recv":     notSupported,
		"sock_send":     notSupported,
		"sock_shutdown": notSupported,
	}
	builder = r.NewHostModuleBuilder(abi.ModuleWASI)
	for name, definition := range original.ExportedFunctions() {
		function, replaced := ours[name]
		if !replaced {
			theirs, ok := definition.GoFunction().(api.GoModuleFunction)
			if !ok {
				return fmt.Errorf("provide %s: %s is no function of Go", abi.ModuleWASI, name)
			}
			function = g.precise(theirs)
		}
		if name == "fd_close" {
			function = g.reportStdinEnd(function)
		}
		builder.NewFunctionBuilder().
			WithGoModuleFunction(function, definition.ParamTypes(), definition.ResultTypes()).
			Export(name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("provide %s: %w", abi.ModuleWASI, err)
	}
	return original.Close(ctx)
}

// precise replaces the engine's "io" by the host's errno, because the engine has no errno for a full quota or a
// cancelled run.
func (g *guest) precise(f api.GoModuleFunction) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		g.relay.lastErrno = abi.OK
		f.Call(ctx, mod, stack)
		if len(stack) > 0 && stack[0] == wasiIO && g.relay.lastErrno != abi.OK {
			stack[0] = wasiErrno(g.relay.lastErrno)
		}
	}
}

// reportStdinEnd tells the host when a stdio connector closes fd 0, after which it cannot read an answer.
func (g *guest) reportStdinEnd(f api.GoModuleFunc) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		fd := uint32(stack[0])
		f(ctx, mod, stack)
		if g.stdio && fd == 0 && stack[0] == wasiOK {
			g.flushLine()
			g.relay.call(abi.CallStdinEnd, nil)
		}
	}
}

// wasiErrno converts an errno of the host.
func wasiErrno(e abi.Errno) uint64 {
	switch e {
	case abi.OK:
		return wasiOK
	case abi.EDENIED:
		return wasiAcces
	case abi.ENOENT:
		return wasiNoent
	case abi.ETOOBIG:
		return wasiFbig
	case abi.ENOSPC:
		return wasiNospc
	case abi.ECANCELED:
		return wasiCanceled
	case abi.EINVAL:
		return wasiInval
	case abi.ENOTSUP:
		return wasiNotsup
	}
	return wasiIO
}

func notSupported(_ context.Context, _ api.Module, stack []uint64) { stack[0] = wasiNotsup }

// maxSubscriptions is the maximum number of events in one poll.
const maxSubscriptions = 4096

// Layout of the records that poll_oneoff reads and writes, little-endian.
//
//	subscription, 48 bytes          event, 32 bytes
//	 0  u64 userdata                 0  u64 userdata
//	 8  u8  kind                     8  u16 errno
//	16  u32 clock id, or fd         10  u8  kind
//	24  u64 timeout                 16  u64 bytes ready
//	40  u16 flags, 1 = absolute     24  u16 flags
const (
	subscriptionBytes = 48
	eventBytes        = 32
	eventClock        = 0
)

// pollOneoff waits for the first of some events. A guest's descriptors are always ready, because waiting happens in
// read or write. So a poll with a descriptor returns at once, and one with only clocks is a sleep, which the host
// measures and may cut short. That is not an error: the guest learns the reason with its next call.
func (g *guest) pollOneoff(_ context.Context, mod api.Module, stack []uint64) {
	in, out, n, result := stack[0], stack[1], uint32(stack[2]), uint32(stack[3])
	stack[0] = wasiInval
	if n == 0 || n > maxSubscriptions {
		return
	}
	mem := mod.Memory()
	subscriptions, ok := view(mem, in, uint64(n)*subscriptionBytes)
	if !ok {
		stack[0] = wasiFault
		return
	}
	if _, ok := view(mem, out, uint64(n)*eventBytes); !ok {
		stack[0] = wasiFault
		return
	}
	events, wait, errno := g.readySubscriptions(slices.Clone(subscriptions))
	if errno != wasiOK {
		stack[0] = errno
		return
	}
	if wait > 0 {
		g.sleep(wait)
	}
	mem.Write(uint32(out), events)
	stack[0] = wasiOK
	if !mem.WriteUint32Le(result, uint32(len(events)/eventBytes)) {
		stack[0] = wasiFault
	}
}

// readySubscriptions returns the events to report and how long to sleep first.
func (g *guest) readySubscriptions(subscriptions []byte) (events []byte, wait time.Duration, errno uint64) {
	var timers []byte
	wait = -1
	for s := subscriptions; len(s) > 0; s = s[subscriptionBytes:] {
		if s[8] != eventClock {
			events = append(events, event(s)...)
			continue
		}
		d, errno := g.timeout(s)
		if errno != wasiOK {
			return nil, 0, errno
		}
		switch {
		case wait < 0 || d < wait:
			wait, timers = d, append(timers[:0], event(s)...)
		case d == wait:
			timers = append(timers, event(s)...)
		}
	}
	if len(events) > 0 {
		return events, 0, wasiOK
	}
	return timers, wait, wasiOK
}

// timeout returns the time until a clock subscription is due.
func (g *guest) timeout(s []byte) (time.Duration, uint64) {
	now, ok := g.clock.of(binary.LittleEndian.Uint32(s[16:]))
	if !ok {
		return 0, wasiInval
	}
	at := min(binary.LittleEndian.Uint64(s[24:]), 1<<63-1)
	switch binary.LittleEndian.Uint16(s[40:]) {
	case 0:
		return time.Duration(at), wasiOK
	case 1:
		return time.Duration(max(0, int64(at)-now)), wasiOK
	}
	return 0, wasiInval
}

func event(subscription []byte) []byte {
	var e [eventBytes]byte
	copy(e[:8], subscription)
	e[10] = subscription[8]
	return e[:]
}

// sleep makes a call to which the host replies after d, unless sleeps of this run return at once.
func (g *guest) sleep(d time.Duration) {
	g.flushLine()
	g.clock.advance(d) // before the reply, whose time includes it
	if !g.skipSleeps {
		var request [8]byte
		binary.LittleEndian.PutUint64(request[:], uint64(d))
		g.relay.call(abi.CallSleep, request[:])
	}
}
