package chromium

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
)

// permissions are denied for all origins, always. If one marked must is unknown, the browser is not
// used; the others may be missing in a browser.
var permissions = []struct {
	name string
	must bool
}{
	{"camera", true}, {"microphone", true}, {"geolocation", true}, {"notifications", true},
	{"midi", true}, {midiSysex, true}, {"clipboard-read", true}, {"clipboard-write", false}, {"local-fonts", false},
	{"push", false}, {"background-sync", false}, {"background-fetch", false}, {"periodic-background-sync", false},
	{"persistent-storage", false}, {"payment-handler", false}, {"idle-detection", false}, {"storage-access", false},
	{"top-level-storage-access", false}, {"window-management", false}, {"display-capture", false}, {"nfc", false},
	{"screen-wake-lock", false}, {"system-wake-lock", false}, {"keyboard-lock", false}, {"pointer-lock", false},
	{"speaker-selection", false}, {"captured-surface-control", false}, {"local-network-access", false},
	{"local-network", false}, {"loopback-network", false}, {"accelerometer", false}, {"gyroscope", false},
	{"magnetometer", false}, {"ambient-light-sensor", false}, {"web-app-installation", false}, {"smart-card", false},
	{"hand-tracking", false},
}

// midiSysex is midi with the right to send system-exclusive messages.
const midiSysex = "midi sysex"

func descriptor(name string) *browser.PermissionDescriptor {
	if name == midiSysex {
		return &browser.PermissionDescriptor{Name: "midi", Sysex: true}
	}
	return &browser.PermissionDescriptor{Name: name, UserVisibleOnly: name == "push"}
}

// forbid denies permissions, and downloads unless the tabs have a directory for them.
func (b *Browser) forbid(ctx context.Context) error {
	for _, p := range permissions {
		params := browser.SetPermissionParams{Setting: browser.PermissionSettingDenied, Permission: descriptor(p.name)}
		if _, err := cdp.Call(ctx, b.cdp, browser.SetPermission, params); err != nil && p.must {
			return fmt.Errorf("%w: permission %s cannot be denied: %w", ErrUnsafe, p.name, b.why(ctx, err))
		}
		if err := ctx.Err(); err != nil {
			return b.why(ctx, err)
		}
	}
	return b.permitDownloads(ctx, true)
}

// permitDownloads allows downloads if the tabs have a directory for them, or denies them.
func (b *Browser) permitDownloads(ctx context.Context, may bool) error {
	p := browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny, EventsEnabled: new(true)}
	if dir := b.options.Tabs.Downloads; may && dir != "" {
		p.Behavior, p.DownloadPath = browser.SetDownloadBehaviorBehaviorAllowAndName, dir
	}
	_, err := cdp.Call(ctx, b.cdp, browser.SetDownloadBehavior, p)
	if err == nil {
		b.mu.Lock()
		b.saving = may
		b.mu.Unlock()
	}
	return b.why(ctx, err)
}
