//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/tests/browsing"
)

func decode(b *testing.B, raw []byte, out any) {
	b.Helper()
	if err := json.Unmarshal(raw, out); err != nil {
		b.Fatal(err)
	}
}

// visited is plain with a page in it.
func visited(b *testing.B, path, url string) (context.Context, func()) {
	b.Helper()
	ctx, end := plain(b, path)
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		b.Fatal(err)
	}
	return ctx, end
}

// losses of each kind.
const losses = 10

// BenchmarkLoss measures the time from the loss of a browser until the run knows of it,
// while the owner is asked to use the browser. The browser's process is killed, its
// page's process is killed, or its page's process hangs; an endless script does not
// count as loss. The first is compared with chromedp. Goals: 1 s, 1 s, 8 s.
func BenchmarkLoss(b *testing.B) {
	path := browserPath(b)
	url := site(b, clickPage)
	for b.Loop() {
		var killed, crashed, silent, theirs []time.Duration
		h := browsing.Host(b, browser.Options{})
		for range losses {
			killed = append(killed, loss(b, h, url, "", syscall.SIGKILL))
			crashed = append(crashed, loss(b, h, url, "--type=renderer", syscall.SIGKILL))
			silent = append(silent, loss(b, h, url, "--type=renderer", syscall.SIGSTOP))

			ctx, end := plain(b, path)
			at := kill(b, "", syscall.SIGKILL)
			<-chromedp.FromContext(ctx).Browser.LostConnection
			theirs = append(theirs, time.Since(at))
			end()
		}
		percentiles(b, "killed", killed)
		percentiles(b, "crashed", crashed)
		percentiles(b, "hung", silent)
		percentiles(b, "chromedp-killed", theirs)
	}
}

// loss returns how long it takes until a run knows that its browser has ended.
func loss(b *testing.B, h *browser.Host, url, which string, signal syscall.Signal) time.Duration {
	b.Helper()
	run := browsing.Begin(b, h, browser.SessionOptions{}, url)
	defer run.End()
	run.Must(browsing.M{"verb": "open", "url": url, "persistent": true})
	run.Asked("int_1", "manual_action", time.Now())
	defer run.Answered("int_1")
	// Before the first probe has passed, a silent page does not count as lost.
	if a := run.Probe(b.Context()); a.Status != "available" {
		b.Fatalf("the browser is %s: %s", a.Status, a.Reason)
	}
	time.Sleep(time.Second)
	at := kill(b, which, signal)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for now := range tick.C {
		if len(run.Run.Events("lost")) > 0 {
			return now.Sub(at)
		}
		if now.Sub(at) > time.Minute {
			b.Fatal("nobody noticed")
		}
	}
	return 0
}

// kill signals the one browser of this process, or those of its processes whose
// arguments say which.
func kill(b *testing.B, which string, signal syscall.Signal) time.Time {
	b.Helper()
	all := tasks(b)
	mine := browsers(b, all)
	if len(mine) != 1 {
		b.Fatalf("there are %d browsers", len(mine))
	}
	at := time.Now()
	n := 0
	for _, t := range all {
		if which == "" && t.pid == mine[0].pid || which != "" && strings.Contains(t.arguments, which) &&
			descends(all, t.pid, mine[0].pid) {
			if err := syscall.Kill(t.pid, signal); err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	if n == 0 {
		b.Fatal("there was nothing to kill")
	}
	return at
}
