//go:build linux

package bench

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/patience"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// A program is the built command over a data directory.
type program struct {
	*testing.B
	path, dir string
	host      *exec.Cmd // that serves it; nil for none
}

// collected is a program whose data directory has n records.
func collected(b *testing.B, n int) *program {
	b.Helper()
	path, err := build.Program()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "sluice-bench-") // a short one, for the socket in it
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	p := &program{B: b, path: path, dir: filepath.Join(dir, "data")}
	h, err := app.Open(b.Context(), app.Options{Store: "badger:" + p.dir, NoSandbox: true})
	if err == nil {
		err = h.Store.PutConnection(b.Context(), store.Connection{ID: "bench", CreatedAt: time.Now()})
	}
	if err != nil {
		b.Fatal(err)
	}
	newCorpus().collect(b, h.Store, "1", 0, n)
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *program) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.Context(), p.path, append(args, "--store", "badger:"+p.dir)...) // #nosec G204 -- ours
	cmd.Env = append(os.Environ(), "SLUICE_URL=", "SLUICE_STORE=")
	return cmd
}

// do runs a command, and returns how long it took and the CPU time that it and the host took.
func (p *program) do(args ...string) (took, cpu time.Duration) {
	p.Helper()
	before, began := p.hostCPU(), time.Now()
	cmd := p.command(args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	took = time.Since(began)
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + p.hostCPU() - before
}

// serve starts a host, which end ends.
func (p *program) serve() {
	p.Helper()
	p.host = p.command("serve", "--listen", "127.0.0.1:0", "--quiet")
	if err := p.host.Start(); err != nil {
		p.Fatal(err)
	}
	ctx, cancel := patience.Within(p.Context(), time.Minute)
	defer cancel()
	for !p.serves() || p.command("doctor", "--json").Run() != nil { // a doctor before it would have the data directory
		select {
		case <-ctx.Done():
			p.Fatal("the host never listened")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *program) serves() bool {
	_, err := os.Stat(filepath.Join(p.dir, "sluice.sock"))
	return err == nil
}

func (p *program) end() {
	p.Helper()
	err := p.host.Process.Signal(syscall.SIGTERM)
	if err = errors.Join(err, p.host.Wait()); err != nil {
		p.Fatal(err)
	}
	p.host = nil
}

// hostCPU is the CPU time that the host took so far.
func (p *program) hostCPU() time.Duration {
	p.Helper()
	if p.host == nil {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.host.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(after)
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond // of a hundredth of a second each
}

// hostPeak is the most memory that the host had, in megabytes, and what of it are pages of files now: of the program
// itself, most of all, which the kernel drops when it needs them.
func (p *program) hostPeak() (all, files float64) {
	p.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.host.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	return float64(field(status, "VmHWM:")) / 1000, float64(field(status, "RssFile:")) / 1000
}

// newPeak forgets the peak; where that fails, hostPeak is that of all before too.
func (p *program) newPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.host.Process.Pid), []byte("5"), 0)
}

// BenchmarkExport takes a million records away with the command, also those that are found
// and with a mark, without a host and with one: records a second, and a second of the CPU of command and host together.
// Beside it encoding/csv writes a file of such rows from memory. Goals: 300,000 JSONL and 250,000 CSV.
func BenchmarkExport(b *testing.B) {
	n := records()
	p := collected(b, n)
	to := filepath.Join(b.TempDir(), "out")
	for b.Loop() {
		export := func(where string) {
			for _, x := range []struct {
				name, format string
				chosen       []string
			}{
				{"jsonl", "jsonl", nil}, {"csv", "csv", nil},
				{"found", "jsonl", []string{"--find", "w8x"}}, {"marked", "jsonl", []string{"--since-mark", to + ".mark"}},
			} {
				_ = os.Remove(to + "." + x.format)
				_ = os.Remove(to + ".mark")
				took, cpu := p.do(append([]string{"export", "bench", "--to", to + "." + x.format}, x.chosen...)...)
				b.ReportMetric(rate(n, took), where+"-"+x.name+"/s")
				b.ReportMetric(rate(n, cpu), where+"-"+x.name+"/cpu-s")
			}
		}
		export("alone")
		p.serve()
		export("host")
		p.end()
		b.ReportMetric(rate(n, bareCSV(b, n)), "encoding-csv/s")
		b.ReportMetric(0, "ns/op")
	}
}

// bareCSV has encoding/csv write rows of as many and as long cells.
func bareCSV(b *testing.B, n int) time.Duration {
	b.Helper()
	row := []string{"bench", "items", "", "2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05.000Z", "",
		"run_01K9W3C7RZ5D1N8V5X9M2QH4TB", "", "",
		"true", "1000.25", "w12x", "17", "2026-01-02T03:04:05Z", "", "w8x w120x", strings.Repeat("w80x ", 12)}
	f, err := os.Create(filepath.Join(b.TempDir(), "bare.csv"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	began, w := time.Now(), csv.NewWriter(f)
	for i := range n {
		row[2], row[5], row[14] = strconv.Itoa(i), strconv.Itoa(i), strconv.Itoa(i)
		if err := w.Write(row); err != nil {
			b.Fatal(err)
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkMemory is the most memory that a host takes for exports, queries, searches and
// destinations, one after the other, of a million records and of three. Goals: under 150 MB, and no
// more of three million, or ten, than of one. SLUICE_BENCH_MEMORY=1,3,10 takes ten too, and 15 GB of the disk.
func BenchmarkMemory(b *testing.B) {
	n := records()
	for b.Loop() {
		for _, text := range strings.Split(cmp.Or(os.Getenv("SLUICE_BENCH_MEMORY"), "1,3"), ",") {
			times, err := strconv.Atoi(text)
			if err != nil {
				b.Fatal(err)
			}
			p := collected(b, times*n)
			p.serve()
			note := func(what string) {
				all, files := p.hostPeak()
				b.ReportMetric(all, fmt.Sprintf("%dx-%s-MB", times, what))
				b.ReportMetric(files, fmt.Sprintf("%dx-%s-files-MB", times, what))
				p.newPeak()
			}
			note("idle")
			p.do("export", "bench", "--to", filepath.Join(p.dir, "..", "out.csv"))
			note("export")
			for _, kind := range []string{"sqlite", "parquet"} {
				p.do("destination", "add", kind, kind+":"+filepath.Join(p.dir, "..", kind))
				p.do("destination", "sync", kind)
				note(kind)
			}
			p.do("query", "SELECT city, count(*) FROM bench.items GROUP BY 1 ORDER BY 2 DESC LIMIT 10")
			note("query")
			p.do("search", "w8x")
			note("search")
			p.end()
		}
		b.ReportMetric(0, "ns/op")
	}
}
