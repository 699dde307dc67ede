package chromium

import (
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/host/browser/page"
)

// libraryFlags are the defaults of the DevTools library; a test compares them. Some are replaced
// below.
var libraryFlags = []Flag{
	{Name: "no-first-run"},
	{Name: "no-default-browser-check"},
	{Name: "headless"},
	{Name: "hide-scrollbars"},
	{Name: "mute-audio"},
	{Name: "disable-background-networking"},
	{Name: "enable-features", Value: "NetworkService,NetworkServiceInProcess"},
	{Name: "disable-background-timer-throttling"},
	{Name: "disable-backgrounding-occluded-windows"},
	{Name: "disable-breakpad"},
	{Name: "disable-client-side-phishing-detection"},
	{Name: "disable-default-apps"},
	{Name: "disable-dev-shm-usage"},
	{Name: "disable-extensions"},
	{Name: "disable-features", Value: "Translate,BlinkGenPropertyTrees"},
	{Name: "disable-hang-monitor"},
	{Name: "disable-ipc-flooding-protection"},
	{Name: "disable-popup-blocking"},
	{Name: "disable-prompt-on-repost"},
	{Name: "disable-renderer-backgrounding"},
	{Name: "disable-sync"},
	{Name: "force-color-profile", Value: "srgb"},
	{Name: "metrics-recording-only"},
	{Name: "safebrowsing-disable-auto-update"},
	{Name: "enable-automation"},
	{Name: "password-store", Value: "basic"},
	{Name: "use-mock-keychain"},
}

// arguments returns the browser's command line: the library's flags overlaid with ours, each name
// once. There is no debugging port, and the sandbox is on, unless the operator allows a browser
// without one.
func arguments(o Options, sandboxed bool) []string {
	flags := slices.Clone(libraryFlags)
	if !smallSharedMemory() {
		flags = slices.DeleteFunc(flags, func(f Flag) bool { return f.Name == "disable-dev-shm-usage" })
	}
	for _, f := range Flags(o.Proxy, o.Window.Width, o.Window.Height) {
		flags = laid(flags, f)
	}
	flags = append(flags, Flag{Name: "user-data-dir", Value: o.Profile}, Flag{Name: "remote-debugging-pipe"})
	if !sandboxed {
		flags = append(flags, Flag{Name: "no-sandbox"})
	}
	args := make([]string, 0, len(flags)+1)
	for _, f := range flags {
		args = append(args, f.String())
	}
	return append(args, "about:blank")
}

// laid replaces a flag, or appends it.
func laid(flags []Flag, f Flag) []Flag {
	if i := slices.IndexFunc(flags, func(g Flag) bool { return g.Name == f.Name }); i >= 0 {
		flags[i] = f
		return flags
	}
	return append(flags, f)
}

// environment returns the whole environment of a browser: home and temporary files within the
// surface's directory, and no keys.
func environment(home, scratch string) []string {
	return append([]string{
		"HOME=" + home,
		"TMPDIR=" + scratch,
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
	}, Environment()...)
}

// viewport fills in defaults.
func viewport(v page.Viewport) page.Viewport {
	if v.Width <= 0 || v.Height <= 0 {
		v.Width, v.Height = 1280, 800
	}
	return v
}

// A Flag is a flag of the browser's command line: --Name, or --Name=Value.
type Flag struct{ Name, Value string }

// String returns the flag as an argument.
func (f Flag) String() string {
	if f.Value == "" {
		return "--" + f.Name
	}
	return "--" + f.Name + "=" + f.Value
}

// withheld lists browser features that would call home or listen, and the pages that a window keeps ready in a renderer
// for an address bar, which nobody sees: half of the processor time of a start. A second disable-features flag would
// replace the first, so this is the whole list.
const withheld = "Translate,BlinkGenPropertyTrees,AutofillServerCommunication,OptimizationHints,MediaRouter," +
	"DialMediaRouteProvider,CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,PrivacySandboxSettings4," +
	"NetworkTimeServiceQuerying,SegmentationPlatform,AimServerRequestOnStartupEnabled,PreconnectToSearch," +
	"WebUIOmniboxPopup,WebUIOmniboxAimPopup"

// nowhere is an address at which nothing listens and which the gate denies.
const nowhere = "http://127.0.0.1:9"

// Flags returns the flags that every browser is started with, each name once: those that leave only
// the gate as a way out, and those that silence its own services. The window is in CSS pixels.
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

// Environment returns the variables of a browser beside HOME, TMPDIR, PATH and LANG, which disable
// keys for Google's services.
func Environment() []string {
	return []string{"GOOGLE_API_KEY=no", "GOOGLE_DEFAULT_CLIENT_ID=no", "GOOGLE_DEFAULT_CLIENT_SECRET=no"}
}
