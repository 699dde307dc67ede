//go:build unix

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
	"github.com/sluicehost/sluice/tests/playwright"
)

// manyRows is a page of about 1,600 elements, a third of which can be used.
func manyRows() string {
	var s strings.Builder
	s.WriteString(`<!doctype html><title>Rows</title><h1>Rows</h1><ul>`)
	for i := range 400 {
		fmt.Fprintf(&s, `<li><span>Row %d</span> <a href="#r%d">Open %d</a> <button type="button">Pay</button></li>`, i, i, i)
	}
	s.WriteString(`</ul>`)
	return s.String()
}

// BenchmarkSnapshot reads a page of 1,600 elements as a guest gets it, in turns with
// what Playwright offers: the accessible tree as text, and the markup.
func BenchmarkSnapshot(b *testing.B) {
	url := site(b, manyRows())
	other := playwright.Start(b, browserPath(b))
	mine := browsing.Begin(b, browsing.Host(b, browser.Options{ActionsPerMinute: 1e6}), browser.SessionOptions{}, url)
	mine.Must(browsing.M{"verb": "open", "url": url})
	other.Must(b, playwright.Step{Do: "goto", URL: url})
	for b.Loop() {
		var whole, tree, markup []float64
		size := 0
		for range 60 {
			begun := time.Now()
			r := mine.Must(browsing.M{"verb": "snapshot"})
			whole = append(whole, ms(time.Since(begun)))
			size = len(r.Raw)
			took, text := other.Must(b, playwright.Step{Do: "aria"})
			if !strings.Contains(text, "Row 399") {
				b.Fatal("playwright's tree is not whole")
			}
			tree = append(tree, ms(took))
			took, text = other.Must(b, playwright.Step{Do: "content"})
			if !strings.Contains(text, "Row 399") {
				b.Fatal("playwright's markup is not whole")
			}
			markup = append(markup, ms(took))
		}
		b.ReportMetric(median(whole), "snapshot-p50-ms")
		b.ReportMetric(float64(size)/1024, "snapshot-KB")
		b.ReportMetric(median(tree), "playwright-aria-p50-ms")
		b.ReportMetric(median(markup), "playwright-content-p50-ms")
		b.ReportMetric(median(whole)/median(tree), "snapshot/aria")
	}
}
