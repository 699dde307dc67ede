//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/jail"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/tests/build"
)

func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	if told := os.Getenv(crowdEnv); told != "" {
		if err := beCrowd(told); err != nil {
			fmt.Fprintln(os.Stderr, "crowd:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// records is how many one run ingests; SLUICE_BENCH_RECORDS changes it.
func records() int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_BENCH_RECORDS")); err == nil && n >= 1000 {
		return n
	}
	return 1_000_000
}

// with opens a host over an empty store for use, and closes it, so that nothing of it
// still works while the next one is measured. Hosts with and without a jail do not
// trust the modes of each other's cache, so each kind has its own.
func with(b *testing.B, walls jail.Walls, use func(h *app.Host)) {
	b.Helper()
	dir, cache := b.TempDir(), os.Getenv("SLUICE_CACHE")
	if cache != "" && walls.Off {
		cache += "-without-walls"
	}
	h, err := app.Open(context.Background(), app.Options{Store: "badger:" + dir, CacheDir: cache, Walls: walls})
	if err != nil {
		b.Fatal(err)
	}
	use(h)
	if err := errors.Join(h.Close(), os.RemoveAll(dir)); err != nil {
		b.Error(err)
	}
}

func loaded(b *testing.B, h *app.Host, dir string) *app.Loaded {
	b.Helper()
	wasm, err := build.Connector("tests/bench/" + dir)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "guest.wasm")
	if err := os.WriteFile(path, wasm, 0o600); err != nil {
		b.Fatal(err)
	}
	l, err := h.Load(context.Background(), path, "")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// ingest runs a guest once and returns the wall time from Do to its result.
func ingest(b *testing.B, h *app.Host, l *app.Loaded, path string, n, first int) (time.Duration, *run.Result) {
	b.Helper()
	r, err := h.Start(context.Background(), app.RunRequest{
		Connector: l, Config: configOf(path, n, first),
	})
	if err != nil {
		b.Fatal(err)
	}
	return finish(b, r, int64(n))
}

func configOf(path string, n, first int) []byte {
	return fmt.Appendf(nil, `{"records":%d,"first":%d,"path":%q}`, n, first, path)
}

func finish(b *testing.B, r *run.Run, n int64) (time.Duration, *run.Result) {
	b.Helper()
	began := time.Now()
	result, err := r.Do(context.Background())
	took := time.Since(began)
	if err != nil {
		b.Fatal(err)
	}
	if result.Status != abi.Succeeded || result.RecordsFlushed != n {
		b.Fatalf("ended as %s with %d records: %+v", result.Status, result.RecordsFlushed, result.Failure)
	}
	return took, result
}

func rate(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

// BenchmarkIngest ingests into synced Badger from a Go guest with the SDK, as structs
// and with the builder, and from a guest that only replays frames. The alternative is
// the same connector as a native program that pipes JSON lines into the same run engine
// and store. They take turns; the median of three turns is reported, with the CPU time
// of a record in the host and in the guest, which shows what limits each. Goals: at
// least as fast as the native program and 150,000 records a second; 300,000 replayed
// frames a second.
func BenchmarkIngest(b *testing.B) {
	n := records()
	paths := []struct{ name, dir, path string }{
		{"native", "", ""}, {"struct", "ingest", "struct"}, {"builder", "ingest", "builder"}, {"frames", "frames", ""},
	}
	for b.Loop() {
		seen := map[string][]float64{}
		for range 3 {
			for _, p := range paths {
				with(b, jail.Walls{}, func(h *app.Host) {
					ingestion := func() (time.Duration, *run.Result) { return native(b, h, n) }
					if p.dir != "" {
						l := loaded(b, h, p.dir)
						ingestion = func() (time.Duration, *run.Result) { return ingest(b, h, l, p.path, n, 0) }
					}
					before := cpuTime(b)
					took, result := ingestion()
					seen[p.name+"-host-cpu-us/rec"] = append(seen[p.name+"-host-cpu-us/rec"], perRecord(n, cpuTime(b)-before))
					seen[p.name+"-guest-cpu-us/rec"] = append(seen[p.name+"-guest-cpu-us/rec"],
						perRecord(n, time.Duration(result.Usage.CPU)*time.Millisecond))
					seen[p.name+"-rec/s"] = append(seen[p.name+"-rec/s"], rate(n, took))
				})
			}
		}
		for name, figures := range seen {
			b.ReportMetric(median(figures), name)
		}
		for _, p := range paths[1:] {
			b.ReportMetric(median(seen[p.name+"-rec/s"])/median(seen["native-rec/s"]), p.name+"/native")
		}
	}
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}

func perRecord(n int, d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }

// cpuTime returns the CPU time of this process without its children.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkGrowth compares the rate of a store's fifth million records with that of the
// first million of a new store, ingested right after it: medians of three turns, and
// the peak memory of host and worker. Goals: less than 20 % slower, under 400 MB.
func BenchmarkGrowth(b *testing.B) {
	n := records()
	for b.Loop() {
		var first, last []float64
		var worker int64
		// a new peak; where that fails, that of all benchmarks is reported
		_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
		grow := func(millions int) (lastRate float64) {
			with(b, jail.Walls{}, func(h *app.Host) {
				l := loaded(b, h, "ingest")
				for million := range millions {
					took, result := ingest(b, h, l, "builder", n, million*n)
					lastRate = rate(n, took)
					worker = max(worker, result.Usage.PeakMemory)
				}
			})
			return lastRate
		}
		for range 3 {
			last = append(last, grow(5))
			first = append(first, grow(1))
		}
		b.ReportMetric(median(first), "first-rec/s")
		b.ReportMetric(median(last), "fifth-rec/s")
		b.ReportMetric(median(last)/median(first), "fifth/first")
		b.ReportMetric(float64(peakRSS(b))/1e6, "host-peak-MB")
		b.ReportMetric(float64(worker)/1e6, "worker-peak-MB")
	}
}

// peakRSS is the host's own peak resident memory in bytes.
func peakRSS(b *testing.B) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// BenchmarkOneRecord measures a run that emits one record, from its start to its
// durable result, with the module warm, and the share of each step. Goal: under 60 ms.
func BenchmarkOneRecord(b *testing.B) {
	for b.Loop() {
		with(b, jail.Walls{}, func(h *app.Host) { oneRecord(b, h) })
	}
}

func oneRecord(b *testing.B, h *app.Host) {
	b.Helper()
	l := loaded(b, h, "ingest")
	ingest(b, h, l, "struct", 1, 0) // warm
	const rounds = 20
	spent := map[string]time.Duration{}
	for i := range rounds {
		time.Sleep(100 * time.Millisecond) // runs do not follow on each other: let blank workers stand ready
		var guest run.Guest
		began := time.Now()
		r, err := h.Start(context.Background(), app.RunRequest{
			Connector: l, Config: configOf("struct", 1, i+1), Launched: func(g run.Guest) run.Guest { guest = g; return g },
		})
		if err != nil {
			b.Fatal(err)
		}
		spent["checks"] += time.Since(began)
		took, result := finish(b, r, 1)
		steps := guest.Exit().Steps
		spent["total"] += time.Since(began)
		spent["run"] += took
		spent["run.ready"] += steps.Ready
		spent["run.ready.enter"] += steps.Enter
		spent["run.ready.load"] += steps.Load
		spent["run.instantiate"] += steps.Instantiate
		spent["guest-cpu"] += time.Duration(result.Usage.CPU) * time.Millisecond
	}
	for name, d := range spent {
		b.ReportMetric(float64(d.Microseconds())/1000/rounds, name+"-ms")
	}
}

// BenchmarkJail measures the cost of the jail: the same run with the worker's walls,
// without them, and with the guest in this process, without a socket. They take turns;
// medians of three turns are reported.
func BenchmarkJail(b *testing.B) {
	n := records()
	for b.Loop() {
		seen := map[string][]float64{}
		note := func(name string, v float64) { seen[name] = append(seen[name], v) }
		for range 3 {
			for _, off := range []bool{true, false} {
				name := map[bool]string{true: "walls-off", false: "walls-on"}[off]
				with(b, jail.Walls{Off: off}, func(h *app.Host) {
					took, result := ingest(b, h, loaded(b, h, "ingest"), "builder", n, 0)
					note(name+"-rec/s", rate(n, took))
					note(name+"-guest-cpu-us/rec", perRecord(n, time.Duration(result.Usage.CPU)*time.Millisecond))
				})
			}
			with(b, jail.Walls{Off: true}, func(h *app.Host) {
				note("in-process-rec/s", inProcessRate(b, h, loaded(b, h, "ingest"), n))
			})
		}
		for name, figures := range seen {
			b.ReportMetric(median(figures), name)
		}
		b.ReportMetric(median(seen["walls-on-rec/s"])/median(seen["walls-off-rec/s"]), "on/off")
		b.ReportMetric(median(seen["walls-on-rec/s"])/median(seen["in-process-rec/s"]), "on/in-process")
	}
}
