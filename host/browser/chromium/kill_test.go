//go:build unix

package chromium_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/tests/campaign"
)

// Browsers that are started and killed, or ended, leave no process, no zombie, no
// descriptor, no directory and no goroutine.
func TestKillLeavesNothing(t *testing.T) {
	c := campaign.New(t, "kill -9, the browser")
	o := options(t)
	round(t, o, 0) // what is opened once stays
	temporary := entries(t, os.TempDir())
	fds, goroutines := len(entries(t, "/proc/self/fd")), runtime.NumGoroutine()
	var starts, closes, losses []time.Duration
	for i := range c.Length(4, 1) {
		start, loss, end := round(t, o, c.IntN(4))
		starts, closes, losses = append(starts, start), append(closes, end), append(losses, loss)
		c.Cycle()
		c.Checked(1)
		if left := owned(o); len(left) > 0 {
			c.Lost(len(left), "cycle %d: processes are left: %q", i, left)
		}
		for _, name := range entries(t, o.Home) {
			if strings.Contains(name, "org.chromium.Chromium") {
				c.Lost(1, "cycle %d: %s is left", i, name)
			}
		}
	}
	if n := len(entries(t, "/proc/self/fd")); n > fds {
		c.Lost(n-fds, "descriptors: %d before, %d after", fds, n)
	}
	for end := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		c.Lost(n-goroutines, "goroutines: %d before, %d after", goroutines, n)
	}
	for _, name := range entries(t, os.TempDir()) {
		if info, err := os.Lstat(filepath.Join(os.TempDir(), name)); err == nil && !slices.Contains(temporary, name) {
			if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == o.UID && o.UID != 0 {
				c.Lost(1, "%s is left", name)
			}
		}
	}
	t.Logf("start %v, loss noticed %v, end %v (medians)", median(starts), median(losses), median(closes))
}

// round is one life of a browser and how it ends: 0 gracefully, 1 killed whole, 2
// killed in its main process while it starts a page, 3 killed in a renderer.
func round(t *testing.T, o chromium.Options, how int) (start, loss, end time.Duration) {
	t.Helper()
	begun := time.Now()
	b, err := chromium.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	start = time.Since(begun)
	begun = time.Now()
	switch how {
	case 1:
		_ = syscall.Kill(-b.PID(), syscall.SIGKILL)
	case 2:
		go func() { _, _ = b.NewTab(context.Background()) }()
		_ = syscall.Kill(b.PID(), syscall.SIGKILL)
	case 3:
		for _, pid := range renderers(o) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		until(t, b, "the crash is noticed", func() bool { return b.Fault() != nil })
		loss = time.Since(begun)
	}
	if how == 1 || how == 2 {
		<-b.Lost()
		loss = time.Since(begun)
	}
	begun = time.Now()
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return start, loss, time.Since(begun)
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
