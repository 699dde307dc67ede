package bench

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// site serves one page at every address.
func site(b *testing.B, html string) string {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(html))
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// browserPath is the path of the browser that all benchmarks use.
func browserPath(b *testing.B) string {
	b.Helper()
	found, err := chromium.Find(b.Context(), os.Getenv("SLUICE_CHROMIUM"), false)
	if err != nil {
		b.Fatal(err)
	}
	return found.Path
}

// plain starts the same browser as chromedp does by default, with a blank tab.
func plain(b *testing.B, path string) (ctx context.Context, end func()) {
	b.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 720))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses to work for root
	}
	alloc, stop := chromedp.NewExecAllocator(b.Context(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx); err != nil {
		b.Fatal(err)
	}
	return ctx, func() {
		_ = chromedp.Cancel(ctx) // waits for its end, or it is gone already
		cancel()
		stop()
	}
}

// A task is a process of this machine.
type task struct {
	pid, parent int
	arguments   string
}

func tasks(b *testing.B) (all []task) {
	b.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range stats {
		stat, err1 := os.ReadFile(path) // #nosec G304 -- of /proc
		line, err2 := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		end := bytes.LastIndexByte(stat, ')')
		if err1 != nil || err2 != nil || end < 0 {
			continue // it is over
		}
		t := task{arguments: string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))}
		t.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if f := strings.Fields(string(stat[end+1:])); len(f) > 1 {
			t.parent, _ = strconv.Atoi(f[1])
		}
		all = append(all, t)
	}
	return all
}

// browsers returns the child processes that are main processes of browsers.
func browsers(b *testing.B, all []task) (found []task) {
	b.Helper()
	for _, t := range all {
		if strings.Contains(t.arguments, "--user-data-dir=") && !strings.Contains(t.arguments, "--type=") &&
			descends(all, t.pid, os.Getpid()) {
			found = append(found, t)
		}
	}
	return found
}

func descends(all []task, pid, from int) bool {
	for range 64 {
		if pid == from {
			return true
		}
		parent := 0
		for _, t := range all {
			if t.pid == pid {
				parent = t.parent
			}
		}
		if pid = parent; pid <= 1 {
			return false
		}
	}
	return false
}

// pss returns the memory of this process's browsers in MB, with shared pages counted
// once.
func pss(b *testing.B) float64 {
	b.Helper()
	all, sum := tasks(b), 0
	for _, t := range all {
		if !strings.Contains(t.arguments, "chrom") || !descends(all, t.pid, os.Getpid()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(t.pid), "smaps_rollup"))
		if err != nil {
			continue // it is over
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				kb, _ := strconv.Atoi(f[1])
				sum += kb
			}
		}
	}
	return float64(sum) / 1024
}
