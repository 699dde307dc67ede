//go:build linux

package jail_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/jail"
)

// The environment is replaced, whatever the host's is; the command is "worker".
func TestEnvironmentIsReplaced(t *testing.T) {
	t.Setenv("SLUICE_OWNER_SECRET", "must not pass")
	_, r := run(t, launcher(t, jail.Options{}), order{}, nil)
	want := []string{"GOGC=off", "GOMAXPROCS=2", "GOMEMLIMIT=201326592", "GOTRACEBACK=none", "MALLOC_ARENA_MAX=1"}
	slices.Sort(r.Arrived.Env)
	if d := cmp.Diff(want, r.Arrived.Env); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
	if len(r.Arrived.Args) != 0 {
		t.Errorf("arguments after the command: %q", r.Arrived.Args)
	}
}

// On a machine with every layer a worker is fully isolated, and says so.
func TestEveryLayerHolds(t *testing.T) {
	need(t, "namespaces", "landlock", "seccomp")
	_, r := run(t, launcher(t, jail.Options{}), order{Seal: true}, nil)
	t.Logf("%+v", r.Isolation)
	if r.Isolation.Level != jail.LevelFull {
		t.Errorf("isolation %+v", r.Isolation)
	}
}

// Workers started from many goroutines at once each have their own uid,
// and nothing of them is left behind.
func TestManyWorkers(t *testing.T) {
	l := launcher(t, jail.Options{})
	run(t, l, order{}, nil) // whatever is opened once is open now
	before := countDescriptors(t)
	var mu sync.Mutex // guards started
	var started []*jail.Process
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p, err := l.Start(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			started = append(started, p)
		})
	}
	wg.Wait()
	uids := map[int]bool{}
	for _, p := range started {
		uids[p.Identity().UID] = true
	}
	if os.Geteuid() == 0 && len(uids) != len(started) {
		t.Errorf("%d workers have the uids %v", len(started), uids)
	}
	for _, p := range started {
		wg.Go(func() {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
			if exit, err := p.Wait(); err != nil || !exit.Killed {
				t.Errorf("exit %+v %v", exit, err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if after := countDescriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// Closing the launcher leaves no worker, and it starts none any more.
func TestCloseEndsWorkers(t *testing.T) {
	l, err := jail.NewLauncher(jail.Options{Executable: workerExecutable})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Socket.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("worker is still there")
	}
	if err := errors.Join(l.Close(), p.Kill(), p.Suspend(), p.Resume()); err != nil {
		t.Errorf("after the end: %v", err)
	}
	if _, err := l.Start(t.Context()); !errors.Is(err, jail.ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
}

// A context that is over starts nothing.
func TestStartRefuses(t *testing.T) {
	l := launcher(t, jail.Options{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Start(over); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}

// BenchmarkSpawn measures from the start to a worker behind all its walls.
func BenchmarkSpawn(b *testing.B) {
	for _, bc := range []struct {
		name  string
		walls jail.Walls
	}{
		{"every wall", jail.Walls{}},
		{"no namespaces", jail.Walls{NoNamespaces: true}},
		{"no seccomp", jail.Walls{NoSeccomp: true}},
		{"no uid", jail.Walls{NoUID: true}},
		{"no landlock", jail.Walls{NoLandlock: true}},
		{"off", jail.Walls{Off: true}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			l := launcher(b, jail.Options{Walls: bc.walls})
			for b.Loop() {
				w, _ := run(b, l, order{Seal: true}, nil)
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEnter measures what a run waits for when its worker was started before:
// from the order to a worker behind all its walls.
func BenchmarkEnter(b *testing.B) {
	l := launcher(b, jail.Options{})
	blank := make([]*worker, 0, 16)
	for b.Loop() {
		if len(blank) == 0 {
			b.StopTimer()
			for range cap(blank) {
				blank = append(blank, start(b, l))
			}
			for _, w := range blank {
				awaitBlank(b, w)
			}
			b.StartTimer()
		}
		w := blank[len(blank)-1]
		blank = blank[:len(blank)-1]
		w.send(b, order{Seal: true}, nil)
		w.reply(b)
		b.StopTimer()
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// awaitBlank returns when the worker sleeps, waiting for its order.
func awaitBlank(b *testing.B, w *worker) {
	b.Helper()
	for {
		used, err := w.CPU()
		if err != nil {
			b.Fatal(err)
		}
		if used > 0 && allThreads(b, w.PID(), "S (sleeping)") {
			if after, err := w.CPU(); err == nil && after == used {
				return
			}
		}
		runtime.Gosched()
	}
}
