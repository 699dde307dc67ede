package chromium_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

// gated are options of a browser behind a gate that denies everything.
func gated(t *testing.T, mode string) chromium.Options {
	t.Helper()
	gate, err := chromium.OpenGate(chromium.GateOptions{Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	o := options(t)
	o.Proxy, o.Wrap, o.Attach, o.Namespace = gate.ProxyURL(), gate.Wrap, gate.Attach, gate.Mode() == chromium.ModeNamespace
	return o
}

// A browser behind its gate gets the gate's answer and nothing else; where this host
// may make namespaces it has only a loopback interface.
func TestBehindTheGate(t *testing.T) {
	modes := []string{chromium.ModeFlags}
	if chromium.EgressMode() == chromium.ModeNamespace {
		modes = append(modes, chromium.ModeNamespace)
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			o := gated(t, mode)
			b := started(t, o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := b.Tabs()[0].Navigate(ctx, "http://denied.test/", "load"); !errors.Is(err, page.ErrHost) {
				t.Errorf("a denied address: %v", err)
			}
			f := b.Facts()
			if f.Egress != mode || f.Sandbox != "on" {
				t.Errorf("facts: %+v", f)
			}
			if mode == chromium.ModeFlags {
				return
			}
			devices, err := os.ReadFile("/proc/" + strconv.Itoa(b.PID()) + "/net/dev")
			if lines := strings.Split(strings.TrimSpace(string(devices)), "\n"); err != nil || len(lines) != 3 ||
				!strings.Contains(lines[2], "lo:") {
				t.Errorf("interfaces: %q, %v", devices, err)
			}
		})
	}
}
