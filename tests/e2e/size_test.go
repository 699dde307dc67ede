package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// call makes a DevTools call that returns nothing.
func call[P any](b *tab, c cdp.Command[P, cdp.Empty], p P) error {
	_, err := chromedp.Call(b.ctx, c, p)
	return err
}

// phone gives a tab the size of an upright phone.
func (b *tab) phone() {
	b.t.Helper()
	for _, err := range []error{
		call(b, emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 2, Mobile: true}),
		call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}),
	} {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// wide gives a tab the size of a screen again.
func (b *tab) wide() {
	b.t.Helper()
	for _, err := range []error{
		call(b, emulation.SetDeviceMetricsOverride,
			emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 900, DeviceScaleFactor: 1}),
		call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{}),
	} {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// looked takes pictures of a page at both sizes, light and dark, and fails for what axe finds on the phone in light
// and on the screen in dark, and for a page that is wider than the phone.
func looked(t *testing.T, b *tab, name string) {
	t.Helper()
	for size, scheme := range map[string]string{"phone": "light", "wide": "dark"} {
		if size == "phone" {
			b.phone()
		} else {
			b.wide()
		}
		b.media(scheme)
		for _, f := range accessible(t, b) {
			t.Errorf("%s, %s, %s: %s: %s, %d times", name, size, scheme, f.ID, f.Help, len(f.Nodes))
			for _, n := range f.Nodes[:min(len(f.Nodes), 2)] {
				t.Logf("%.300s\n%.400s", n.HTML, n.FailureSummary)
			}
		}
		if size == "phone" {
			if w := eval[int](b, `document.documentElement.scrollWidth`); w > 390 {
				t.Errorf("%s is %d wide", name, w)
			}
		}
		for _, scheme := range []string{"light", "dark"} {
			b.media(scheme)
			b.shot(name + "-" + size + "-" + scheme)
		}
	}
}
