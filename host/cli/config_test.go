package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/web"
)

// The file in docs/operating.md names every setting, with the default it has.
func TestConfigDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := bytes.Cut(text, []byte("```yaml\nstore: "))
	block, _, closed := bytes.Cut(rest, []byte("\n```"))
	if !ok || !closed {
		t.Fatal("docs/operating.md has no settings")
	}
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(path, append([]byte("store: "), block...), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := readConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	got, want := c.options(), (&configFile{}).options()
	want.Host.Store = "badger:/var/lib/sluice"
	if want.Host.Prespawn != prespawned {
		t.Errorf("prespawn %d", want.Host.Prespawn)
	}
	if diff := cmp.Diff(want.Host.Budgets, got.Host.Budgets); diff != "" {
		t.Errorf("budgets are documented otherwise (-default +documented):\n%s", diff)
	}
	if diff := cmp.Diff(want.Host.RateLimit, got.Host.RateLimit); diff != "" {
		t.Errorf("pace is documented otherwise (-default +documented):\n%s", diff)
	}
	if b := got.Host.Browser; b.Path != "" || b.MaxSurfaces != 4 || b.ProbeInterval.Seconds() != 2 ||
		b.ActionsPerMinute != 120 || b.AllowNoSandbox || b.FirstUID != 0 {
		t.Errorf("browsers are documented otherwise: %+v", b)
	}
	if got.Host.Store != want.Host.Store || got.Host.Prespawn != want.Host.Prespawn || got.Host.Require != "" ||
		got.Host.RequireSignature ||
		got.Server.Expose || got.Server.MetricsOpen || got.WebhookLoopback || len(got.Server.Listen) != 1 {
		t.Errorf("settings are documented otherwise: %+v", got)
	}
	if r, s := got.Server, got.Streams; r.Rates.KeyPerSecond != 50 || r.Rates.AddressPerSecond != 50 ||
		r.Rates.KeyBurst != 200 || r.Rates.LoginsPerMinute != 5 ||
		r.Rates.TokenPostsPerMinute != 10 || r.PerAddress != web.DefaultPerAddress ||
		r.Connections != web.DefaultConnections || s.PerRun != 32 || s.PerKey != 128 || s.Total != 1024 {
		t.Errorf("limits are documented otherwise: %+v, %+v", r, s)
	}
	if s := got.Service; s.Runs != 8 || s.Accepted != 64 || s.Share != 16 || s.Grace.Seconds() != 30 ||
		s.ShortestInterval.Seconds() != 10 {
		t.Errorf("runs are documented otherwise: %+v", s)
	}
	if j := got.Host.Journal; j.Bytes != run.DefaultHistoryBytes || j.Entries != run.DefaultHistoryEntries ||
		j.Awake != app.DefaultAwake || j.FreeMemory != app.DefaultFreeMemory {
		t.Errorf("runs that wait are documented otherwise: %+v", j)
	}
}

// A setting of browsers that cannot be meant is refused by name.
func TestBrowserSettings(t *testing.T) {
	for text, wrong := range map[string]string{
		"browser: {linger: 2m, uid_range: [300000, 300100], max_surfaces: 2, path: /opt/chrome}": "",
		"browser: {linger: 6m}":               "browser.linger",
		"browser: {probe_interval: 11s}":      "browser.probe_interval",
		"browser: {uid_range: [0, 10]}":       "browser.uid_range",
		"browser: {uid_range: [3000, 2999]}":  "browser.uid_range",
		"browser: {uid_range: [3000]}":        "browser.uid_range",
		"browser: {max_surfaces: -1}":         "browser.max_surfaces",
		"browser: {actions_per_minute: 9999}": "browser.actions_per_minute",
		"browser: {no_sandbox: true}":         "no setting no_sandbox",
	} {
		path := filepath.Join(t.TempDir(), "sluice.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(path)
		switch {
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %v", text, err)
		case wrong == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case wrong == "":
			o := c.options().Host.Browser
			if o.Path != "/opt/chrome" || o.Linger.Minutes() != 2 || o.FirstUID != 300000 || o.LastUID != 300100 ||
				o.MaxSurfaces != 2 {
				t.Errorf("%+v", o)
			}
		}
	}
}
