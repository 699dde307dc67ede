//go:build unix

package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/tests/browsing"
	"github.com/sluicehost/sluice/tests/playwright"
)

const clickPage = `<!doctype html><title>Count</title><h1>Count</h1>
<p>Some text around it, and <a href="#top">a link</a>.</p><form><label>Name <input name="name"></label></form>
<button type="button" onclick="out.textContent = ++n">Add</button><p id="out">0</p><script>let n = 0;</script>`

// BenchmarkClick measures a click that is proved by the change it makes, compared with
// Playwright's click and a read of the same text, on the same page and browser, in
// turns: 4 rounds of 60 each. "engine" is what comes before verification: resolving,
// the checks and the dispatch. The floor of the whole is 100 ms, the pause between two
// reads. Goals: engine at most half of Playwright's click at p50; the whole within 25
// ms of the floor.
func BenchmarkClick(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, clickPage)
	}))
	b.Cleanup(s.Close)
	binary, err := chromium.Find(b.Context(), "", false)
	if err != nil {
		b.Fatal(err)
	}
	other := playwright.Start(b, binary.Path)
	h := browsing.Host(b, browser.Options{ActionsPerMinute: 1e6})
	mine := browsing.Begin(b, h, browser.SessionOptions{}, s.URL)
	mine.Must(browsing.M{"verb": "open", "url": s.URL})
	other.Must(b, playwright.Step{Do: "goto", URL: s.URL})
	target, shown := browsing.Selector("role", "button", "name", "Add"), browsing.Selector("id", "out")
	for b.Loop() {
		var theirs, whole, engine []float64
		n := 0
		for range 4 {
			for range 60 {
				n++
				begun := time.Now()
				r := mine.Must(browsing.M{"verb": "click", "target": target, "expect": browsing.TextIs(shown, strconv.Itoa(n))})
				whole = append(whole, ms(time.Since(begun)))
				for _, t := range r.Transitions {
					if t.State == "pending_verification" {
						engine = append(engine, float64(t.At-begun.UnixMilli()))
					}
				}
				took, text := other.Must(b, playwright.Step{Do: "click", Name: "Add", Read: "#out"})
				if text != strconv.Itoa(n) {
					b.Fatalf("playwright read %q after %d clicks", text, n)
				}
				theirs = append(theirs, ms(took))
			}
		}
		b.ReportMetric(median(theirs), "playwright-p50-ms")
		b.ReportMetric(median(engine), "engine-p50-ms")
		b.ReportMetric(median(whole), "verified-p50-ms")
		b.ReportMetric(percentile(whole, 99), "verified-p99-ms")
		b.ReportMetric(median(whole)-100, "verified-above-floor-ms")
		b.ReportMetric(median(engine)/median(theirs), "engine/playwright")
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile returns the value that p percent of the samples do not exceed.
func percentile(figures []float64, p int) float64 {
	slices.Sort(figures)
	return figures[min(len(figures)-1, len(figures)*p/100)]
}
