package browser_test

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkClick measures a click that is proved by a changed text at the default settings.
// The floor is the pause between two reads. See docs/spec/browser.md, "Performance".
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
