package hostile_test

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A gauge samples the anonymous memory of this process, which holds the host, all the
// time, so that brief peaks of a case count too. It does not trigger the garbage
// collector.
type gauge struct {
	peak atomic.Int64 // since the last reset
	last atomic.Int64
	end  chan struct{}
	done sync.WaitGroup
}

// sampleEvery is how often the gauge looks.
const sampleEvery = 5 * time.Millisecond

// startGauge skips the test where the system does not report memory.
func startGauge(t *testing.T) *gauge {
	t.Helper()
	if _, ok := anonymous(); !ok {
		t.Skip("SKIPPED: no RssAnon in /proc/self/status")
	}
	g := &gauge{end: make(chan struct{})}
	g.sample()
	g.done.Go(g.run)
	t.Cleanup(func() { close(g.end); g.done.Wait() })
	return g
}

func (g *gauge) run() {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			g.sample()
		case <-g.end:
			return
		}
	}
}

func (g *gauge) sample() {
	now, _ := anonymous()
	g.last.Store(now)
	for {
		old := g.peak.Load()
		if now <= old || g.peak.CompareAndSwap(old, now) {
			return
		}
	}
}

// reset starts a new peak.
func (g *gauge) reset() {
	g.peak.Store(0)
	g.sample()
}

// anonymous returns this process's anonymous resident memory in bytes. It allocates
// almost nothing, so as not to measure itself.
func anonymous() (int64, bool) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var space [4 << 10]byte
	n, err := f.Read(space[:])
	_, rest, ok := bytes.Cut(space[:n], []byte("\nRssAnon:"))
	value, _, end := bytes.Cut(rest, []byte(" kB"))
	if err != nil || !ok || !end {
		return 0, false
	}
	kib := int64(0)
	for _, c := range bytes.TrimSpace(value) {
		kib = kib*10 + int64(c-'0')
	}
	return kib << 10, true
}
