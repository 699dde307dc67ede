package dashboard_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVendoredAssets: what others wrote is what the README says, and everything
// else is named as ours.
func TestVendoredAssets(t *testing.T) {
	readme, err := os.ReadFile("assets/README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, m := range regexp.MustCompile(
		"(?m)^\\| `([^`]+)` .* `([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(readme), -1) {
		want[m[1]] = m[2]
	}
	if len(want) != 4 {
		t.Fatalf("the README names %d files", len(want))
	}
	files, err := os.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		body, err := os.ReadFile(filepath.Join("assets", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		if digest, vendored := want[f.Name()]; vendored && digest != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not the file that the README names", f.Name())
		} else if !vendored && !strings.Contains(string(readme), "`"+f.Name()+"`") && f.Name() != "README.md" {
			t.Errorf("the README does not know %s", f.Name())
		}
	}
}

// TestNothingInline: templates hold no script, style or handler, and ask no
// other server.
func TestNothingInline(t *testing.T) {
	pages, err := filepath.Glob("templates/*.html")
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d templates: %v", len(pages), err)
	}
	bad := regexp.MustCompile(
		`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals='?js|<script(?: defer)?>|(?:src|href)="(?:https?:)?//|<iframe [^s]|<iframe src="[^{]|<object|<embed|<base`)
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.FindString(string(text)); m != "" {
			t.Errorf("%s has %q", name, m)
		}
	}
	for _, name := range []string{"sluice.js", "chart.js", "theme.js", "view.js", "palette.js"} {
		text, err := os.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(
			`innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|https?://`).FindString(string(text)); m != "" {
			t.Errorf("%s has %q", name, m)
		}
	}
}

// TestNoTrustedStrings: nothing here is declared to be safe HTML.
func TestNoTrustedStrings(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	bad := regexp.MustCompile(`template\.(HTML|HTMLAttr|JS|JSStr|URL|CSS|Srcset)\b`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.Find(text); m != nil && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s has %s", name, m)
		}
	}
}

// TestAssetsAreKept: an asset with its digest in the address may be kept, and
// without is not.
func TestAssetsAreKept(t *testing.T) {
	s := open(t)
	at := regexp.MustCompile(`/ui/assets/sluice\.css\?v=[0-9a-f]{16}`).FindString(s.page("/ui/"))
	if a := s.send("GET", at, ""); a.status != 200 || !strings.Contains(a.header.Get("Cache-Control"), "immutable") ||
		a.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("%s: %d %v", at, a.status, a.header)
	}
	if a := s.send("GET", "/ui/assets/sluice.css?v=0", ""); a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("an old address may be kept: %s", a.header.Get("Cache-Control"))
	}
	for _, name := range []string{"README.md", "..%2fui.go", "none"} {
		if a := s.send("GET", "/ui/assets/"+name, ""); a.status != 404 {
			t.Errorf("%s: %d", name, a.status)
		}
	}
}
