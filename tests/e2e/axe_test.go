package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/tests/e2e/served"
	"github.com/sluicehost/sluice/tests/npm"
)

// axe checks accessibility.
var axe = npm.Package{Name: "axe-core", Version: "4.14.1",
	SHA512: "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="}

// A finding is a problem that axe reports on a page.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// TestAccessible: every page, light and wide, dark and on a phone, with content and
// without, has no serious or critical finding, and is no wider than the phone.
func TestAccessible(t *testing.T) {
	h, _ := open(t, tempDir(t))
	b := signIn(t, h, false)
	if found := violations(t, b, "document.body.append(new Image())"); !slices.ContainsFunc(found,
		func(f finding) bool { return f.ID == "image-alt" && f.Impact == "critical" }) {
		t.Fatalf("axe does not find an image without a text: %+v", found)
	}
	check := func(path, scheme string) {
		t.Helper()
		b.open(path)
		if scheme == "dark" {
			b.until(`document.documentElement?.scrollWidth <= 390`) // a page may be replacing itself just now
		}
		for _, f := range accessible(t, b) {
			t.Errorf("%s, %s: %s (%s): %s, %d times", path, scheme, f.ID, f.Impact, f.Help, len(f.Nodes))
			for _, n := range f.Nodes[:min(len(f.Nodes), 3)] {
				t.Logf("%.300s\n%.400s", n.HTML, n.FailureSummary)
			}
		}
	}
	for _, path := range []string{"/ui/", "/ui/inbox", "/ui/records", "/ui/connectors"} { // nothing there yet
		check(path, "light")
	}
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 60, "text": "something"},
		step{"do": "progress", "n": 5, "text": "Going"}, step{"do": "otp", "text": "Code?"})
	connect(t, h.Client, "two", step{"do": "emit", "n": 3}, step{"do": "fail", "text": "The service said no"})
	asking, failed := start(t, h.Client, "one"), start(t, h.Client, "two")
	if _, err := h.Wait(soon(t), asking, served.Asks); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(soon(t), failed, served.Over); err != nil {
		t.Fatal(err)
	}
	if _, err := h.TCP(t.Context()); err != nil { // a key, to be listed
		t.Fatal(err)
	}
	long := strings.Repeat("Donaudampfschifffahrt", 4)[:80]
	if _, err := h.Do(t.Context(), "PATCH", "/v1/connections/two",
		host.ChangeConnection{DisplayName: &long}, nil); err != nil {
		t.Fatal(err)
	}
	pages := []string{"/ui/", "/ui/inbox", "/ui/runs", "/ui/runs/" + string(asking), "/ui/runs/" + string(failed),
		"/ui/connectors/steps/connect",
		"/ui/connections/one", "/ui/connections/one/grant", "/ui/connections/one/start", "/ui/data", "/ui/data/sql",
		"/ui/data/destinations", "/ui/assistants", "/ui/records?connection=one&stream=items", "/ui/files?connection=one",
		"/ui/record?connection=one&stream=items&key=0-000000001", "/ui/connectors", "/ui/connectors/steps", "/ui/schedules",
		"/ui/keys", "/ui/audit", "/ui/settings", "/ui/login", "/ui/runs/run_none"}
	for scheme, size := range map[string]func(){"light": b.wide, "dark": b.phone} {
		size()
		b.media(scheme)
		for _, path := range pages {
			check(path, scheme)
		}
		b.open("/ui/runs/" + string(asking))
		b.shot(scheme)
	}
}

// accessible returns axe's serious and critical findings on the page as it is, by these
// rules, or by all.
func accessible(t *testing.T, b *tab, rules ...string) (out []finding) {
	t.Helper()
	for _, f := range violations(t, b, "", rules...) {
		if f.Impact == "serious" || f.Impact == "critical" {
			out = append(out, f)
		}
	}
	return out
}

// violations returns axe's findings after a statement, by these rules or by all.
// Everything is one script, since a page that reloads itself forgets what was defined;
// axe starts anew when that happens while it runs.
func violations(t *testing.T, b *tab, statement string, rules ...string) []finding {
	t.Helper()
	only := ""
	if len(rules) > 0 {
		only = fmt.Sprintf(`, runOnly: ["%s"]`, strings.Join(rules, `", "`))
	}
	script := axe.File(t, "axe.min.js") + "\n;" + statement + `;axe.run(document, {resultTypes: ["violations"]` + only +
		`}).then((r) => r.violations)`
	for again := 3; ; again-- {
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]finding](script, chromedp.EvalAwaitPromise))
		switch {
		case err == nil:
			return found
		case again == 0:
			t.Fatal(err)
		}
		b.do(chromedp.WaitReady(chromedp.CSS("main")))
	}
}
