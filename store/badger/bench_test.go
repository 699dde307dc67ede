//go:build unix

package badger_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A feeder submits pipelined flushes of new records, as a run does.
type feeder struct {
	tb    testing.TB
	s     *badger.Store
	lease store.Lease
	next  int // number of the next key
	data  []byte
	queue []*store.Receipt
	spare []*store.Batch
	sent  []*store.Batch
}

const pipeline = 16 // flushes of a run that wait for the disk

func newFeeder(tb testing.TB, s *badger.Store) *feeder {
	tb.Helper()
	l, err := s.Acquire(tb.Context(),
		store.Run{ID: store.RunID(fmt.Sprintf("run_%026d", time.Now().UnixNano())), ConnectionID: "bench", Status: "active"},
		"h", "b", time.Hour)
	if err != nil {
		tb.Fatal(err)
	}
	return &feeder{tb: tb, s: s, lease: l, data: testData()}
}

func testData() []byte {
	data := make([]byte, 184)
	for i := range data {
		data[i] = byte('a' + i%26)
	}
	return data
}

// send submits one flush of n new records with keys from from on.
func (f *feeder) send(from, n, round int) { f.sendStep(from, n, round, 1, 0) }

// sendStep submits one flush of n records whose keys are step apart, modulo wrap.
func (f *feeder) sendStep(from, n, round, step, wrap int) {
	if len(f.queue) == pipeline {
		f.wait(1)
	}
	var b *store.Batch
	if k := len(f.spare); k > 0 {
		b, f.spare = f.spare[k-1], f.spare[:k-1]
	} else {
		b = new(store.Batch)
	}
	f.fill(b, from, n, round, step, wrap)
	r, err := f.s.Submit(f.tb.Context(), &store.Commit{
		Lease: f.lease, Batches: []*store.Batch{b},
		Events: []store.Event{{ID: "evt_0", Type: "run.batch_ingested", RunID: f.lease.RunID,
			Data: []byte(`{"records":500}`)}},
	})
	if err != nil {
		f.tb.Fatal(err)
	}
	f.queue, f.sent = append(f.queue, r), append(f.sent, b)
}

func (f *feeder) fill(b *store.Batch, from, n, round, step, wrap int) {
	b.Reset("s")
	var key [16]byte
	for i := range n {
		number := from + i*step
		if wrap > 0 {
			number %= wrap
		}
		k := strconv.AppendUint(key[:0], uint64(number)*0x9E3779B97F4A7C15, 36)
		binary.LittleEndian.PutUint64(f.data[8:], uint64(number+round<<40))
		b.Append(store.Change{Key: k, Data: f.data, EmittedAt: int64(from)})
	}
}

func (f *feeder) wait(n int) {
	for range n {
		if _, err := f.queue[0].Result(); err != nil {
			f.tb.Fatal(err)
		}
		f.spare = append(f.spare, f.sent[0])
		f.queue, f.sent = f.queue[1:], f.sent[1:]
	}
}

// feed sends n new records.
func (f *feeder) feed(n int) {
	for range n / 500 {
		f.send(f.next, 500, 0)
		f.next += 500
	}
}

func (f *feeder) drain() { f.wait(len(f.queue)) }

// benchDir is on a real disk: BENCH_DIR, or the working directory.
func benchDir(tb testing.TB) string {
	dir, err := os.MkdirTemp(os.Getenv("BENCH_DIR"), "sluice-bench-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkIngest measures durable ingest of new 200-byte records in pipelined
// flushes of 500, into a store that holds so many already. BENCH_LONG=1 adds
// five million.
func BenchmarkIngest(b *testing.B) {
	sizes := []int{0, 1_000_000}
	if os.Getenv("BENCH_LONG") != "" {
		sizes = append(sizes, 5_000_000)
	}
	for _, size := range sizes {
		b.Run(fmt.Sprintf("existing=%d", size), func(b *testing.B) {
			s, err := badger.Open(benchDir(b), badger.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			f := newFeeder(b, s)
			f.feed(size)
			f.drain()
			measure(b, f.feed, f.drain)
			b.ReportMetric(float64(s.Memory())/1e6, "index-MB")
		})
	}
}

// BenchmarkRefresh measures a source that is read again from the start: a
// million records, in the order of the first time or in another, all unchanged
// or all changed.
func BenchmarkRefresh(b *testing.B) {
	const total = 1_000_000
	for _, order := range []string{"same", "other"} {
		for round, what := range []string{"unchanged", "changed"} {
			b.Run(order+"-order/"+what, func(b *testing.B) {
				s, err := badger.Open(benchDir(b), badger.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				f := newFeeder(b, s)
				f.feed(total)
				f.drain()
				at := 0
				measure(b, func(n int) {
					for range n / 500 {
						from := at * 500
						if order == "other" {
							from = at * 7919 % (total / 500) * 500 // other flushes, and within them other keys
						}
						f.sendStep(from, 500, round, map[string]int{"same": 1, "other": 3}[order], total)
						at = (at + 1) % (total / 500)
					}
				}, f.drain)
			})
		}
	}
}

// measured is how many records one round of measure feeds.
const measured = 500_000

// measure reports what records cost: time, and processor time of the process.
func measure(b *testing.B, feed func(n int), drain func()) {
	const n = measured
	start, cpu := time.Now(), cpuTime(b)
	b.ResetTimer()
	for range b.N {
		feed(n)
		drain()
	}
	b.ReportMetric(float64(n*b.N)/time.Since(start).Seconds(), "records/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(n*b.N), "cpu-ns/record")
	b.ReportMetric(0, "ns/op")
}

func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRestart measures opening a store of a million records (5 with
// BENCH_LONG) that was not closed, up to the first record read.
func BenchmarkRestart(b *testing.B) {
	total := 1_000_000
	if os.Getenv("BENCH_LONG") != "" {
		total = 5_000_000
	}
	dir := benchDir(b)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLUICE_CHILD=fill", "SLUICE_DIR="+dir, fmt.Sprint("SLUICE_COUNT=", total))
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err == nil {
		b.Fatal("the child did not kill itself")
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	b.ReportMetric(float64(total)/time.Since(start).Seconds(), "fill-records/s")
	b.ReportMetric(float64(u.Maxrss)/1e3, "fill-peak-MB")
	b.ResetTimer()
	for range b.N {
		s, err := badger.Open(dir, badger.Options{})
		if err != nil || s.Damage() != nil {
			b.Fatal(err, s.Damage())
		}
		page, err := s.Records(b.Context(), store.RecordQuery{Connection: "bench", Stream: "s"})
		if err != nil || len(page.Records) != 100 {
			b.Fatal(len(page.Records), err)
		}
		if _, err := s.Record(b.Context(), "bench", "s", page.Records[50].Key); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// childFill fills a store and kills itself.
func childFill(dir string) {
	count, _ := strconv.Atoi(os.Getenv("SLUICE_COUNT"))
	s, err := badger.Open(dir, badger.Options{})
	exitOn(err)
	f := newFeeder(panicTB{}, s)
	step := max(count/10/500*500, 500)
	for f.next < count {
		from, cpu := time.Now(), cpuTime(f.tb)
		f.feed(step)
		f.drain()
		fmt.Fprintf(os.Stderr, "%9d records: %.0f/s, %d cpu-ns/record, index %.1f MB, %s\n", f.next,
			float64(step)/time.Since(from).Seconds(),
			(cpuTime(f.tb)-cpu).Nanoseconds()/int64(step), float64(s.Memory())/1e6, resident())
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// resident is what the kernel says of this process's memory.
func resident() string {
	text, _ := os.ReadFile("/proc/self/status")
	var parts []string
	for line := range strings.Lines(string(text)) {
		for _, name := range []string{"VmHWM:", "RssAnon:", "RssFile:"} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				parts = append(parts, name+" "+strings.TrimSpace(rest))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// panicTB serves a feeder outside a test.
type panicTB struct{ testing.TB }

func (panicTB) Helper()                  {}
func (panicTB) Context() context.Context { return context.Background() }
func (panicTB) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }
