package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

// drain reads calls without answering until the worker is gone.
func drain(g *sandbox.Guest) {
	for in := range g.Calls() {
		in.Release()
	}
}

func TestGuestLeavesOrTraps(t *testing.T) {
	s := open(t)
	spin := forever()
	tests := []struct {
		name string
		wasm []byte
		want sandbox.Exit
	}{
		{"returning", raw().bytes(), sandbox.Exit{Kind: sandbox.ExitExited}},
		{"proc_exit", raw(join(i32(7), []byte{opCall, rawExit})...).bytes(), sandbox.Exit{Kind: sandbox.ExitExited, Code: 7}},
		{"proc_exit in the start section", raw(join(i32(3), []byte{opCall, rawExit})...).with(8, []byte{rawStart}).bytes(),
			sandbox.Exit{Kind: sandbox.ExitExited, Code: 3}},
		{"unreachable", raw(opUnreachable).bytes(), sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapUnreachable}},
		{"unreachable in the start section", raw(opUnreachable).with(8, []byte{rawStart}).bytes(),
			sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapUnreachable}},
		{"out of memory's bounds", raw(join(i32(-8), []byte{opLoad, 2, 0, opDrop})...).bytes(),
			sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapMemory}},
		{"data out of bounds", raw().with(11, vec(join([]byte{0}, i32(70000), []byte{opEnd, 1, 'x'}))).bytes(),
			sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapMemory}},
		{"division by zero", raw(join(i32(1), i32(0), []byte{opDiv, opDrop})...).bytes(),
			sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapInteger}},
		{"no such table entry", raw(join(i32(0), []byte{opIndirect, 0, 0})...).with(4, vec([]byte{0x70, 0, 1})).bytes(),
			sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapIndirectCall}},
		{"recursion", raw(opCall, rawStart).bytes(), sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapStack}},
		{"growing over the cap, then touching",
			raw(join(i32(1024), []byte{opGrow, 0, opDrop}, i32(65536), i32(1), []byte{opStore, 2, 0})...).bytes(),
			sandbox.Exit{Kind: sandbox.ExitTrapped, TrapKind: abi.TrapMemory}},
		{"spinning after leaving", raw(join(i32(5), []byte{opCall, rawExit}, spin)...).bytes(),
			sandbox.Exit{Kind: sandbox.ExitExited, Code: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := started(t, s, prepared(t, s, tt.wasm))
			drain(g)
			e := g.Exit()
			got := sandbox.Exit{Kind: e.Kind, Code: e.Code, TrapKind: e.TrapKind}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s%s", diff, e.Detail)
			}
			if e.Kind == sandbox.ExitTrapped && e.Detail == "" {
				t.Error("a trap without detail")
			}
		})
	}
}

func TestMemoryIsCapped(t *testing.T) {
	s := open(t)
	// Grow to exactly the cap of 4 MiB, touch its end, leave with the old size + grow's refusal.
	grow := func(pages int64) []byte { return join(i32(pages), []byte{opGrow, 0}) }
	code := join(grow(63), []byte{opDrop}, i32(4<<20-4), i32(1), []byte{opStore, 2, 0},
		grow(1), []byte{opCall, rawExit}) // -1 becomes the code
	spec := prepared(t, s, raw(code...).bytes())
	spec.MemoryBytes = 4 << 20
	g := started(t, s, spec)
	drain(g)
	e := g.Exit()
	if e.Kind != sandbox.ExitExited || int32(e.Code) != -1 {
		t.Errorf("ended as %v %d: %s", e.Kind, int32(e.Code), e.Detail)
	}
	if e.Usage.GuestMemoryBytes != 4<<20 {
		t.Errorf("peak linear memory %d, want %d", e.Usage.GuestMemoryBytes, 4<<20)
	}
}

func TestTableBombHitsTheMemoryWall(t *testing.T) {
	s := open(t)
	grow := join([]byte{0xd0, 0x70}, i32(1<<20), []byte{0xfc, 0x0f, 0, opDrop})
	wasm := raw(forever(grow...)...).with(4, vec([]byte{0x70, 0, 1})).bytes()
	g := started(t, s, prepared(t, s, wasm))
	drain(g)
	if e := g.Exit(); e.Kind != sandbox.ExitMemory {
		t.Errorf("ended as %v (%q), want memory_limit", e.Kind, e.Detail)
	} else {
		t.Logf("peak %d MiB", e.Usage.PeakMemoryBytes>>20)
	}
}

func TestKillNeedsNoHelp(t *testing.T) {
	s := open(t)
	tests := map[string][]byte{
		"loop in _start":               raw(forever()...).bytes(),
		"loop in the start section":    raw(forever()...).with(8, []byte{rawStart}).bytes(),
		"inside of a call":             raw(calling(rawProgress, 0, 0)...).bytes(),
		"emit without end nor credit":  raw(forever(calling(rawEmit, 0, 100)...)...).bytes(),
		"sleeping loop over the table": raw(forever(calling(rawReply, 0, 0)...)...).bytes(),
	}
	for name, wasm := range tests {
		t.Run(name, func(t *testing.T) {
			g := started(t, s, prepared(t, s, wasm))
			for g.Usage().CPU < 5*time.Millisecond && strings.Contains(name, "loop") { // it does run
				continue
			}
			g.Kill()
			drain(g) // returns when the worker is gone
			if e := g.Exit(); e.Kind != sandbox.ExitKilled {
				t.Errorf("ended as %+v", e)
			}
			if err := g.Reply(3, abi.OK, nil); !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, sandbox.ErrNoCall) {
				t.Errorf("a reply to a dead guest: %v", err)
			}
		})
	}
}

func TestComputeHasABackstop(t *testing.T) { // The kernel's limit, should the host not act
	if testing.Short() {
		t.Skip("takes six seconds of CPU time")
	}
	s := open(t)
	spec := prepared(t, s, raw(forever()...).bytes())
	spec.Compute = time.Millisecond
	g := started(t, s, spec)
	drain(g)
	if e := g.Exit(); e.Kind != sandbox.ExitCPU {
		t.Errorf("ended as %v %q", e.Kind, e.Detail)
	}
}

func TestSuspendAndResume(t *testing.T) {
	s := open(t)
	g := doing(t, s, "ping 2")
	in := <-g.Calls()
	if err := g.Suspend(); err != nil {
		t.Fatal(err)
	}
	replied := make(chan error, 1)
	go func() { replied <- g.Reply(in.ID, abi.OK, nil) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	select {
	case err := <-replied:
		t.Fatalf("replied to a suspended guest: %v", err)
	case in := <-g.Calls():
		t.Fatalf("a suspended guest called %d", in.Call)
	case <-ctx.Done():
	}
	if err := g.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-replied; err != nil {
		t.Fatal(err)
	}
	if rest := transcript(t, g, nil); len(rest) != 1 {
		t.Errorf("after the pause came %q", rest)
	}
	if e := g.Exit(); e.Kind != sandbox.ExitExited {
		t.Errorf("ended as %+v", e)
	}
}

func TestSuspendedGuestCanBeKilled(t *testing.T) {
	s := open(t)
	g := started(t, s, prepared(t, s, raw(forever()...).bytes()))
	if err := g.Suspend(); err != nil {
		t.Fatal(err)
	}
	g.Kill()
	drain(g)
	if e := g.Exit(); e.Kind != sandbox.ExitKilled {
		t.Errorf("ended as %+v", e)
	}
}

func TestWorkerEndsWithItsSocket(t *testing.T) { // Whatever the guest is doing
	s := open(t)
	for name, wasm := range map[string][]byte{
		"looping": raw(forever()...).bytes(),
		"waiting": raw(calling(rawProgress, 0, 0)...).bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			g := started(t, s, prepared(t, s, wasm))
			if name == "waiting" {
				<-g.Calls()
			}
			if err := g.Hangup(); err != nil {
				t.Fatal(err)
			}
			drain(g)
			if e := g.Exit(); e.Kind != sandbox.ExitCrashed || !strings.Contains(e.Detail, "host") {
				t.Errorf("ended as %+v", e)
			}
		})
	}
}
