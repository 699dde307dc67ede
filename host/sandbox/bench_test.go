package sandbox_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/sandbox"
)

// wallsOff leaves out every layer, to measure their price.
// Its workers are of the host's own user, so its cache is another.
func wallsOff(o *sandbox.Options) {
	o.Jail.Walls = jail.Walls{Off: true}
	o.CacheDir = filepath.Join(built.dir, "bare")
}

// BenchmarkCall is one call there and back.
func BenchmarkCall(b *testing.B) {
	for name, change := range map[string]func(*sandbox.Options){"walls": func(*sandbox.Options) {}, "bare": wallsOff} {
		b.Run(name, func(b *testing.B) {
			s := open(b, change, func(o *sandbox.Options) { o.CallsPerSecond, o.CallBurst = 100_000, 100_000 })
			g := doing(b, s, fmt.Sprint("ping ", b.N))
			var n int
			b.ResetTimer()
			for in := range g.Calls() {
				in.Release()
				if err := g.Reply(in.ID, abi.OK, nil); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.StopTimer()
			if n != b.N {
				b.Errorf("%d calls, want %d: %+v", n, b.N, g.Exit())
			}
		})
	}
}

// BenchmarkEmit is frames as the SDK makes them, 64 KiB each.
func BenchmarkEmit(b *testing.B) {
	const frame = 64 << 10
	s := open(b)
	b.SetBytes(frame)
	g := doing(b, s, fmt.Sprint("emit ", b.N, " ", frame))
	b.ResetTimer()
	for in := range g.Calls() {
		in.Release()
		if in.Call != abi.CallEmit {
			if err := g.Reply(in.ID, abi.OK, nil); err != nil {
				b.Fatal(err)
			}
			continue
		}
		if err := g.Credit(1, frame); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if e := g.Exit(); e.Kind != sandbox.ExitExited {
		b.Errorf("ended as %+v", e)
	}
}

// BenchmarkStart is from the request to the guest's first call: a Go guest of 3 MB
// whose code is in the cache.
func BenchmarkStart(b *testing.B) {
	for _, waiting := range []int{-1, 2} {
		for name, change := range map[string]func(*sandbox.Options){"walls": func(*sandbox.Options) {}, "bare": wallsOff} {
			b.Run(fmt.Sprintf("%s/prespawn=%d", name, max(waiting, 0)), func(b *testing.B) {
				s := open(b, change, func(o *sandbox.Options) { o.Prespawn = waiting })
				wasm, err := taskGuest()
				if err != nil {
					b.Fatal(err)
				}
				spec := prepared(b, s, wasm)
				spec.Env = []string{"DO=ping 1"}
				var sum sandbox.Steps
				var first time.Duration
				for b.Loop() {
					b.StopTimer()
					for waiting > 0 && len(s.Idle()) < waiting {
						time.Sleep(time.Millisecond)
					}
					b.StartTimer()
					began := time.Now()
					g := started(b, s, spec)
					in := <-g.Calls()
					first += time.Since(began)
					b.StopTimer()
					_ = g.Reply(in.ID, abi.OK, nil)
					drain(g)
					t := g.Exit().Steps
					sum.Spawn += t.Spawn
					sum.Enter += t.Enter
					sum.Load += t.Load
					sum.Ready += t.Ready
					sum.Instantiate += t.Instantiate
					sum.CPU += t.CPU
					b.StartTimer()
				}
				for unit, d := range map[string]time.Duration{
					"spawn-ms": sum.Spawn, "enter-ms": sum.Enter, "load-ms": sum.Load, "cpu-ms": sum.CPU, "ready-ms": sum.Ready,
					"instantiate-ms": sum.Instantiate, "first-call-ms": first,
				} {
					b.ReportMetric(d.Seconds()*1000/float64(b.N), unit)
				}
			})
		}
	}
}

// BenchmarkPrepareWarm is what a new process pays for a module whose code is in
// the cache: verifying every byte of it, once.
func BenchmarkPrepareWarm(b *testing.B) {
	wasm, err := taskGuest()
	if err != nil {
		b.Fatal(err)
	}
	prepared(b, open(b), wasm)
	for b.Loop() {
		b.StopTimer()
		s := open(b)
		m, err := sandbox.CheckModule(wasm, sandbox.ModuleLimits{})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := s.Prepare(b.Context(), m, wasm); err != nil {
			b.Fatal(err)
		}
	}
}
