package browser_test

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkClick is P1 and P2: a click with a text delta, proved at the defaults. The
// floor is the pause between two reads (B260).
func BenchmarkClick(b *testing.B) {
	x := newBench(b)
	x.on("honest")
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		_, _ = one.browser.Tabs()[0].Navigate(b.Context(), "http://shop.test/page/honest", "load")
		b.StartTimer()
		from := time.Now()
		x.is(x.act(save+"}"), "", "")
		took = append(took, time.Since(from))
	}
	slices.Sort(took)
	at := func(p float64) float64 {
		return float64((took[int(p*float64(len(took)-1))] - 100*time.Millisecond).Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "p50-ms-over-floor")
	b.ReportMetric(at(0.9), "p90-ms-over-floor")
	b.ReportMetric(at(0.99), "p99-ms-over-floor")
}
