package chromium_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser/chromium"
)

// The flags as they stand there, and those that quiet what Chromium 150 and 156 call
// beyond them, each name once, and nothing else.
func TestFlags(t *testing.T) {
	const list = `--proxy-server=http://127.0.0.1:3128
--proxy-bypass-list=<-loopback>
--webrtc-ip-handling-policy=disable_non_proxied_udp
--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1
--disable-quic
--headless
--disable-gpu
--window-size=1280,900
--disable-extensions
--disable-component-update
--disable-component-extensions-with-background-pages
--disable-background-networking
--disable-client-side-phishing-detection
--disable-domain-reliability
--disable-field-trial-config
--disable-sync
--no-pings
--no-first-run
--no-default-browser-check
--no-service-autorun
--password-store=basic
--gaia-url=http://127.0.0.1:9
--google-apis-url=http://127.0.0.1:9
--gcm-checkin-url=http://127.0.0.1:9
--component-updater=url-source=http://127.0.0.1:9
--disable-features=Translate,BlinkGenPropertyTrees,AutofillServerCommunication,OptimizationHints,MediaRouter,DialMediaRouteProvider,CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,PrivacySandboxSettings4,NetworkTimeServiceQuerying,SegmentationPlatform,AimServerRequestOnStartupEnabled,PreconnectToSearch,WebUIOmniboxPopup,WebUIOmniboxAimPopup`
	want := map[string]bool{}
	for line := range strings.SplitSeq(list, "\n") {
		want[line] = true
	}
	for _, f := range chromium.Flags("http://127.0.0.1:3128", 1280, 900) {
		if !want[f.String()] {
			t.Errorf("%s is twice or too much", f)
		}
		delete(want, f.String())
	}
	for line := range want {
		t.Errorf("%s is missing", line)
	}
}
