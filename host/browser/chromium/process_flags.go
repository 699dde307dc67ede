package chromium

import (
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// libraryFlags are the defaults of the DevTools library, as a list: a test compares
// them (B247). Some are replaced below.
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

// arguments are the command line of a browser: the library's list with ours laid
// over it, each name once (B247). There is no debugging port (B177), and the sandbox
// is on unless the operator lets a browser be without one that has none here (B176).
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

// laid puts a flag in its place, or at the end.
func laid(flags []Flag, f Flag) []Flag {
	if i := slices.IndexFunc(flags, func(g Flag) bool { return g.Name == f.Name }); i >= 0 {
		flags[i] = f
		return flags
	}
	return append(flags, f)
}

// environment is all that a browser gets of one (B177): a home and a place for
// temporary files inside of the surface's directory, and no keys.
func environment(home, scratch string) []string {
	return append([]string{
		"HOME=" + home,
		"TMPDIR=" + scratch,
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
	}, Environment()...)
}

// viewport fills in what was left out.
func viewport(v page.Viewport) page.Viewport {
	if v.Width <= 0 || v.Height <= 0 {
		v.Width, v.Height = 1280, 800
	}
	return v
}
