package chromium

import (
	"strconv"
)

// A Flag of the browser's command line: --Name, or --Name=Value.
type Flag struct{ Name, Value string }

// String is the flag as an argument.
func (f Flag) String() string {
	if f.Value == "" {
		return "--" + f.Name
	}
	return "--" + f.Name + "=" + f.Value
}

// withheld are the browser's services that would call home or listen (B246). A
// second disable-features replaces the first, so this is the whole list (B247).
const withheld = "Translate,BlinkGenPropertyTrees,AutofillServerCommunication,OptimizationHints,MediaRouter," +
	"DialMediaRouteProvider,CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,PrivacySandboxSettings4," +
	"NetworkTimeServiceQuerying,SegmentationPlatform,AimServerRequestOnStartupEnabled,PreconnectToSearch"

// nowhere is an address at which nothing listens, and which the gate denies.
const nowhere = "http://127.0.0.1:9"

// Flags are the flags that a browser must be started with, each name once: those
// that leave it the gate alone (B245), and those that keep its own services quiet
// (B246). The window is in CSS pixels.
func Flags(proxy string, width, height int) []Flag {
	flags := []Flag{
		{"proxy-server", proxy},
		{"proxy-bypass-list", "<-loopback>"},
		{"webrtc-ip-handling-policy", "disable_non_proxied_udp"},
		{"host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"},
		{"window-size", strconv.Itoa(width) + "," + strconv.Itoa(height)},
		{"password-store", "basic"},
		{"gaia-url", nowhere},
		{"google-apis-url", nowhere},
		{"gcm-checkin-url", nowhere},
		{"component-updater", "url-source=" + nowhere},
		{"disable-features", withheld},
	}
	for _, name := range []string{
		"disable-quic", "headless", "disable-gpu", "disable-extensions", "disable-component-update",
		"disable-component-extensions-with-background-pages", "disable-background-networking",
		"disable-client-side-phishing-detection", "disable-domain-reliability", "disable-field-trial-config",
		"disable-sync", "no-pings", "no-first-run", "no-default-browser-check", "no-service-autorun",
	} {
		flags = append(flags, Flag{Name: name})
	}
	return flags
}

// Environment is what a browser finds in its own beside HOME, PATH and LANG: no
// keys for services (B246).
func Environment() []string {
	return []string{"GOOGLE_API_KEY=no", "GOOGLE_DEFAULT_CLIENT_ID=no", "GOOGLE_DEFAULT_CLIENT_SECRET=no"}
}
