package sandbox_test

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/sandbox"
)

// until waits for a condition that other processes bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("%s never came about", what)
		case <-tick.C:
		}
	}
}

func TestBlankWorkersWait(t *testing.T) {
	s := open(t, func(o *sandbox.Options) { o.Prespawn = 2 })
	spec := prepared(t, s, raw().bytes())
	until(t, "two blank workers", func() bool { return len(s.Idle()) == 2 })
	was := s.Idle()
	g := started(t, s, spec)
	if took := g.Steps().Spawn; took != 0 {
		t.Errorf("a process was started, in %v", took)
	}
	drain(g)
	until(t, "a full pool", func() bool { return len(s.Idle()) == 2 })
	if now := s.Idle(); now[0] != was[1] || slices.Contains(was, now[1]) {
		t.Errorf("blank workers %v, before %v: the oldest is used, nothing twice", now, was)
	}
}

// A host for one run has one worker waiting and no other in its place.
func TestOneRunLeavesNoBlank(t *testing.T) {
	s := open(t, func(o *sandbox.Options) { o.Prespawn, o.OneRun = 0, true })
	until(t, "a blank worker", func() bool { return len(s.Idle()) > 0 })
	spec := prepared(t, s, raw().bytes()) // which may take it
	for range 3 {
		if waiting := s.Idle(); len(waiting) > 1 {
			t.Errorf("blank workers %v wait", waiting)
		}
		drain(started(t, s, spec))
	}
	<-time.After(300 * time.Millisecond) // longer than the pool waits before it starts one
	if left := s.Idle(); len(left) > 0 {
		t.Errorf("blank workers %v wait", left)
	}
}

func TestBlankWorkersGrowOld(t *testing.T) {
	s := open(t, func(o *sandbox.Options) { o.Prespawn, o.BlankLife = 1, 200*time.Millisecond })
	until(t, "a blank worker", func() bool { return len(s.Idle()) == 1 })
	was := s.Idle()
	until(t, "a younger one", func() bool { now := s.Idle(); return len(now) == 1 && now[0] != was[0] })
}

// A worker that died while it waited costs no run. The kill is not waited
// for, so that the host finds out when it hands over the task.
func TestDeadBlankWorkersAreReplaced(t *testing.T) {
	var w watched
	s := open(t, func(o *sandbox.Options) { o.Prespawn, o.Log = 3, slog.New(&w) })
	for _, wasm := range [][]byte{raw().bytes(), raw(forever()...).bytes()} { // the second one is not compiled yet
		for range 8 {
			until(t, "three blank workers", func() bool { return len(s.Idle()) == 3 })
			for _, pid := range s.Idle() {
				process, err := os.FindProcess(pid)
				if err == nil {
					err = process.Kill()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			g := started(t, s, prepared(t, s, wasm))
			g.Kill()
			drain(g)
		}
	}
}

func TestFewEntriesStayOpen(t *testing.T) {
	s := open(t)
	spec := prepared(t, s, raw().bytes())
	for n := range int64(70) {
		prepared(t, s, raw(join(i32(n), []byte{opCall, rawExit})...).bytes())
	}
	if n := s.Footprint(); n != 64 {
		t.Errorf("%d entries are open, want 64", n)
	}
	g := started(t, s, spec) // whose entry was forgotten
	drain(g)
	if e := g.Exit(); e.Kind != sandbox.ExitExited {
		t.Errorf("ended as %+v", e)
	}
}

func TestClosedSandboxStartsNothing(t *testing.T) {
	s := open(t)
	spec := prepared(t, s, raw(forever()...).bytes())
	g := started(t, s, spec)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	drain(g)
	if _, err := s.Start(t.Context(), spec); err == nil {
		t.Error("started after close")
	}
}

func TestInterpreterAgrees(t *testing.T) {
	s := open(t)
	code := join(calling(rawProgress, 0, 3), calling(rawEmit, 1, 4), calling(rawBrowser, 2, 5), i32(6),
		[]byte{opCall, rawExit})
	spec := prepared(t, s, raw(code...).bytes())
	for _, spec.Interpreter = range []bool{false, true} {
		g := started(t, s, spec)
		want := []string{`4 "\x00\x00\x00"`, `2 "\x00\x00\x00\x00"`, `48 "\x00\x00\x00\x00\x00"`}
		if got := transcript(t, g, nil); !slices.Equal(got, want) {
			t.Errorf("interpreter %v: %q", spec.Interpreter, got)
		}
		if e := g.Exit(); e.Kind != sandbox.ExitExited || e.Code != 6 {
			t.Errorf("interpreter %v: ended as %+v", spec.Interpreter, e)
		}
	}
}

func TestProbe(t *testing.T) {
	s := open(t, func(o *sandbox.Options) { o.Require = "process" })
	report, err := s.Probe(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Attempts) == 0 || len(report.Layers) == 0 {
		t.Errorf("an empty report: %+v", report)
	}
	g := started(t, s, prepared(t, s, raw().bytes()))
	drain(g)
	if missing := g.Isolation().Lacks(report.Isolation); len(missing) > 0 {
		t.Errorf("the guest lacks %q", missing)
	}
}
