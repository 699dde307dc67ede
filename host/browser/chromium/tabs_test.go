package chromium_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/page"
)

func tabIDs(b *chromium.Browser) string {
	var ids []string
	for _, t := range b.Tabs() {
		ids = append(ids, t.ID())
	}
	return strings.Join(ids, " ")
}

// Pages that a page opens become tabs in the background, up to the limit, and are
// closed beyond it.
func TestPopupsAreAdopted(t *testing.T) {
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>", "/child": "<title>child</title>"})
	o.MaxTabs = 3
	b := started(t, o)
	load(t, b, "http://site.test/")
	eval(t, b, `window.one = open("/child"), 1`)
	until(t, b, "the first popup is a tab", func() bool { return len(b.Tabs()) == 2 })
	eval(t, b, `window.two = open("/child", "_blank", "noopener"), 1`)
	until(t, b, "the second popup is a tab", func() bool { return len(b.Tabs()) == 3 })
	if got := tabIDs(b); got != "tab_1 tab_2 tab_3" {
		t.Errorf("tabs %s", got)
	}
	for range 5 {
		eval(t, b, `window.over = open("/child"), 1`)
	}
	until(t, b, "what is over the limit is closed", func() bool { return eval(t, b, `over.closed`) == "true" })
	if got := tabIDs(b); got != "tab_1 tab_2 tab_3" {
		t.Errorf("tabs %s", got)
	}
	if got := eval(t, b, `document.visibilityState`); got != `"visible"` {
		t.Errorf("the active tab is %s", got)
	}
	if got := eval(t, b, `new Promise(r => requestAnimationFrame(() => r(1)))`); got != "1" {
		t.Errorf("no frames: %s", got)
	}

	if err := b.Activate(t.Context(), "tab_2"); err != nil {
		t.Fatal(err)
	}
	if got := tabIDs(b); got != "tab_2 tab_1 tab_3" {
		t.Errorf("tabs %s", got)
	}
	if got := eval(t, b, `document.title`); got != `"child"` {
		t.Errorf("the active tab is %s", got)
	}
	if _, err := b.NewTab(t.Context()); !errors.Is(err, page.ErrTooLarge) {
		t.Errorf("a tab too many: %v", err)
	}

	_, _ = b.Eval(t.Context(), `close()`) // an active tab that closes itself is no loss
	until(t, b, "the tab is gone", func() bool { return len(b.Tabs()) == 2 })
	if err := b.Fault(); err != nil {
		t.Errorf("fault: %v", err)
	}
	if err := b.Activate(t.Context(), "tab_2"); !errors.Is(err, page.ErrGone) {
		t.Errorf("a tab that is gone: %v", err)
	}
	tab, err := b.NewTab(t.Context())
	if err != nil || tab.ID() == "tab_2" || b.Tabs()[0] != tab {
		t.Errorf("a new tab: %v, %v", tab, err)
	}
	if err := b.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, b, `location.href`); got != `"about:blank"` || len(b.Tabs()) != 1 {
		t.Errorf("after a reset: %s, %s", got, tabIDs(b))
	}
	if v, err := chromium.Probe(t.Context(), b); err != nil || !v.OK {
		t.Errorf("probe: %+v, %v", v, err)
	}
}

// Where popups are denied none stays, however many a page opens.
func TestPopupsAreDenied(t *testing.T) {
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	o.DenyPopups = true
	b := started(t, o)
	load(t, b, "http://site.test/")
	eval(t, b, `window.all = Array.from({length: 10}, () => open("/")), 1`)
	until(t, b, "all are closed", func() bool { return eval(t, b, `all.every(w => !w || w.closed)`) == "true" })
	if got := tabIDs(b); got != "tab_1" {
		t.Errorf("tabs %s", got)
	}
}

// A crash in the background costs that tab and no other.
func TestBackgroundCrash(t *testing.T) {
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	b := started(t, o)
	load(t, b, "http://site.test/")
	if _, err := b.NewTab(t.Context()); err != nil {
		t.Fatal(err)
	}
	load(t, b, "http://other.test/")
	b.CrashPage(t.Context(), "tab_1")
	until(t, b, "the tab that crashed is gone", func() bool { return tabIDs(b) == "tab_2" || b.Fault() != nil })
	if err := b.Fault(); err != nil {
		t.Errorf("fault: %v", err)
	}
	if err := b.PingPage(t.Context()); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// The last page's end is a loss.
func TestLastPageClosed(t *testing.T) {
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	b := started(t, o)
	load(t, b, "http://site.test/")
	if err := b.CloseTarget(t.Context(), "tab_1"); err != nil {
		t.Fatal(err)
	}
	until(t, b, "it is noticed", func() bool { return b.Fault() != nil })
	if v, err := chromium.Probe(t.Context(), b); err != nil || v.OK {
		t.Errorf("probe: %+v, %v", v, err)
	}
}

// Nothing that needs the owner's consent is granted, or asked for.
func TestPermissionsAreDenied(t *testing.T) {
	o := options(t)
	o.Proxy = site(t, map[string]string{"/": "<title>here</title>"})
	b := started(t, o)
	load(t, b, "http://localhost/") // a secure context, by way of the proxy
	if got := eval(t, b, `isSecureContext`); got != "true" {
		t.Fatalf("secure: %s", got)
	}
	for _, name := range []string{"camera", "microphone", "geolocation", "notifications", "midi",
		"clipboard-read", "local-fonts"} {
		if got := eval(t, b, `navigator.permissions.query({name: "`+name+`"}).then(p => p.state)`); got != `"denied"` {
			t.Errorf("%s is %s", name, got)
		}
	}
	for name, ask := range map[string]string{
		"camera":        `navigator.mediaDevices.getUserMedia({video: true, audio: true})`,
		"geolocation":   `new Promise((y, n) => navigator.geolocation.getCurrentPosition(y, n))`,
		"notifications": `Notification.requestPermission().then(p => p === "denied" ? Promise.reject(p) : p)`,
		"midi":          `navigator.requestMIDIAccess({sysex: true})`,
		"clipboard":     `navigator.clipboard.readText()`,
		"fonts":         `queryLocalFonts().then(all => all.length ? all : Promise.reject("none"))`,
		"hid":           `navigator.hid.requestDevice({filters: []}).then(all => all.length ? all : Promise.reject("none"))`,
		"usb":           `navigator.usb.requestDevice({filters: []})`,
		"serial":        `navigator.serial.requestPort()`,
	} {
		device, wait := name == "usb" || name == "serial" || name == "hid", "8000"
		if device { // these wait for a choice that nobody is shown
			wait = "300"
		}
		got := eval(t, b, `(async () => { try {
			return await Promise.race([`+ask+`.then(() => "granted"), new Promise(y => setTimeout(y, `+wait+`, "waits"))])
		} catch { return "refused" } })()`)
		if got != `"refused"` && !(device && got == `"waits"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
