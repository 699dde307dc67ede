//go:build unix

package bench

import (
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/tests/browsing"
)

// starts of each kind.
const starts = 30

// BenchmarkAcquire measures from open to ready: with a browser that has to be started,
// with one that lingers for its connection, and with the blank one that a host keeps
// ready; in turns with the same browser started by chromedp. Goals at p50: cold 1.1 s,
// warm 100 ms.
func BenchmarkAcquire(b *testing.B) {
	path := browserPath(b)
	for b.Loop() {
		var cold, linger, blank, theirs []float64
		lingering := browsing.Host(b, browser.Options{Linger: fleet.MaxLinger, ActionsPerMinute: 1e6})
		_, reused := acquire(b, lingering, true)
		if reused {
			b.Fatal("the first browser ran before")
		}
		for range starts {
			h := browsing.Host(b, browser.Options{})
			took, reused := acquire(b, h, true)
			if reused {
				b.Fatal("a host that keeps no browsers has one")
			}
			cold = append(cold, took)

			if took, reused = acquire(b, lingering, true); !reused {
				b.Fatal("no browser lingered")
			}
			linger = append(linger, took)

			begun := time.Now()
			_, end := plain(b, path)
			theirs = append(theirs, ms(time.Since(begun)))
			end()
		}
		pool := browsing.Host(b, browser.Options{ActionsPerMinute: 1e6})
		for pause := time.Second; len(blank) < starts; {
			took, reused := acquire(b, pool, false)
			switch {
			case reused:
				blank = append(blank, took)
			case pause > 30*time.Second:
				b.Fatal("no browser is kept ready")
			default:
				pause += pause / 2 // the next blank one takes longer to start here
			}
			time.Sleep(pause)
		}
		b.ReportMetric(median(cold), "cold-p50-ms")
		b.ReportMetric(median(linger), "linger-p50-ms")
		b.ReportMetric(median(blank), "blank-p50-ms")
		b.ReportMetric(median(theirs), "chromedp-p50-ms")
		b.ReportMetric(median(cold)/median(theirs), "cold/chromedp")
		b.ReportMetric(median(linger)/median(theirs), "linger/chromedp")
	}
}

// acquire opens a browser and gives it back.
func acquire(b *testing.B, h *browser.Host, persistent bool) (took float64, reused bool) {
	b.Helper()
	s := browsing.Begin(b, h, browser.SessionOptions{})
	defer s.End()
	begun := time.Now()
	r := s.Must(browsing.M{"verb": "open", "persistent": persistent})
	took = ms(time.Since(begun))
	var reply struct{ Reused bool }
	decode(b, r.Raw, &reply)
	return took, reply.Reused
}

// BenchmarkBrowserMemory measures the memory of each further connection's browser with
// a page open, compared with a further browser of chromedp's. Goal: 180 MB with
// Chromium.
func BenchmarkBrowserMemory(b *testing.B) {
	const further = 3
	path, url := browserPath(b), site(b, clickPage)
	for b.Loop() {
		h := browsing.Host(b, browser.Options{MaxSurfaces: further + 1})
		var sessions []*browsing.Session
		open := func(name string) {
			s := browsing.Begin(b, h, browser.SessionOptions{Connection: name, Name: name, Connector: "test"}, url)
			s.Must(browsing.M{"verb": "open", "url": url, "persistent": true})
			sessions = append(sessions, s)
		}
		open("c0")
		one := settled(b)
		for _, name := range []string{"c1", "c2", "c3"} {
			open(name)
		}
		mine := (settled(b) - one) / further
		for _, s := range sessions {
			s.End()
		}
		_, end := visited(b, path, url)
		defer end()
		their := settled(b)
		for range further {
			_, end := visited(b, path, url)
			defer end()
		}
		theirs := (settled(b) - their) / further
		b.ReportMetric(one, "first-MB")
		b.ReportMetric(mine, "further-MB")
		b.ReportMetric(theirs, "chromedp-further-MB")
		b.ReportMetric(mine/theirs, "further/chromedp")
	}
}

// settled returns the memory of the browsers once they have finished starting.
func settled(b *testing.B) float64 {
	b.Helper()
	time.Sleep(5 * time.Second)
	return pss(b)
}
