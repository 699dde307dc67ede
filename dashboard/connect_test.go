package dashboard_test

import (
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
)

// TestSteps goes from the gallery to the first run: each step is a page that can be loaded
// again, leads back to those before it, and says what there is already.
func TestSteps(t *testing.T) {
	s := open(t)
	s.connect()
	s.host.connectors = []host.Connector{{Name: "mail", DisplayName: "Mail", Manifest: []byte(`{}`),
		Words: []string{"collect letters", "collect folders", "reach a.example"}}}
	mine := s.host.connections[0]
	s.host.connections = append(s.host.connections, host.Connection{ConnectionID: "half", ConnectorName: "mail"},
		host.Connection{ConnectionID: "ran", ConnectorName: "mail", LastRun: &host.LastRun{}},
		host.Connection{ConnectionID: "runs", ConnectorName: "mail", ActiveRunID: "run_0"},
		host.Connection{ConnectionID: "other", ConnectorName: "bank"})
	current := func(path string) string {
		t.Helper()
		return regexp.MustCompile(`aria-current="step">(?:<a[^>]*>|<span>)([^<]*)`).FindStringSubmatch(s.page(path))[1]
	}
	for path, want := range map[string]string{"/ui/connectors": "Choose", "/ui/connectors/mail/connect": "Review",
		"/ui/connections/mail/grant": "Allow", "/ui/connections/mail/start": "Start"} {
		if got := current(path); got != want {
			t.Errorf("%s is the step %s, want %s", path, got, want)
		}
	}
	if page := s.page("/ui/connectors"); !strings.Contains(page, "Collect <bdi hx-disable>letters, folders") &&
		!strings.Contains(page, "letters, folders") {
		t.Error("the gallery does not say what it asks for")
	}
	page := s.page("/ui/connectors/mail/connect")
	if begun := regexp.MustCompile(`/ui/connections/\w+/start`).FindAllString(page, -1); !slices.Equal(begun,
		[]string{"/ui/connections/mail/start", "/ui/connections/half/start"}) {
		t.Errorf("these are offered as begun: %s", begun)
	}
	s.host.connections = []host.Connection{mine}
	s.run("run_1", "mail")
	if got := current("/ui/runs/run_1"); got != "First run" {
		t.Errorf("the run is the step %s", got)
	}

	allow := map[string][]string{"stream.0": {"true"}, "allFields.0": {"true"}}
	if a := s.post("/ui/connections/mail/grant", allow); a.header.Get("HX-Redirect") != "/ui/connections/mail/start" {
		t.Errorf("a first grant leads to %q", a.header.Get("HX-Redirect"))
	}
	s.host.connections[0].LastRun = &host.LastRun{RunID: "run_0"}
	if a := s.post("/ui/connections/mail/grant", allow); a.header.Get("HX-Redirect") != "/ui/connections/mail" {
		t.Errorf("a later one leads to %q", a.header.Get("HX-Redirect"))
	}
	if page := s.page("/ui/connections/mail/grant"); strings.Contains(page, `class="steps"`) {
		t.Error("a change of what is allowed is a step to a first run")
	}
}

// TestStartSaysWhatIsMissing: the page leads to where a connection gets what it lacks.
func TestStartSaysWhatIsMissing(t *testing.T) {
	s := open(t)
	s.connect()
	for missing, want := range map[string]string{"grant_invalid": "/ui/connections/mail/grant",
		"binding_not_approved": "/ui/connections/mail/grant", "setting_missing": "/ui/connections/mail#h-settings",
		"connector_not_runnable": `href="/ui/connectors"`, "secret_missing": "/ui/connections/mail/secret"} {
		s.host.connections[0].NotReady = []string{missing}
		if page := s.page("/ui/connections/mail/start"); !strings.Contains(page, want) ||
			strings.Contains(page, `hx-post="/ui/runs"`) {
			t.Errorf("%s: the page lacks %s, or runs it", missing, want)
		}
	}
	s.host.connections[0].NotReady, s.host.connections[0].Ready = nil, true
	if page := s.page("/ui/connections/mail/start"); !strings.Contains(page, "Run it for the first time") {
		t.Error("it cannot be run")
	}
}

// TestExamplesAreWhatTheySay compares the gallery with the manifests.
func TestExamplesAreWhatTheySay(t *testing.T) {
	s := open(t)
	root, err := html.Parse(strings.NewReader(s.page("/ui/connectors")))
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			page.WriteString(n.Data + "\n")
		}
	}
	names := regexp.MustCompile(`sluice install examples/(\w+)`).FindAllStringSubmatch(page.String(), -1)
	if len(names) < 5 {
		t.Fatalf("%d examples", len(names))
	}
	_, rest, _ := strings.Cut(page.String(), "\nExamples\n")
	for _, m := range names {
		card, after, _ := strings.Cut(rest, m[0])
		rest = after
		raw, err := os.ReadFile("../examples/" + m[1] + "/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := abi.ReadManifest(raw)
		if err != nil {
			t.Fatal(err)
		}
		var collects []string
		want := []string{manifest.DisplayName}
		for _, w := range app.Wants(manifest) {
			if stream, ok := strings.CutPrefix(w.String(), "collect "); ok {
				collects = append(collects, stream)
			} else {
				want = append(want, strings.ToUpper(w.String()[:1])+w.String()[1:])
			}
		}
		lines := strings.Split(card, "\n")
		for _, w := range append(want, strings.Join(collects, ", ")) {
			if !slices.Contains(lines, w) {
				t.Errorf("%s does not say %q", m[1], w)
			}
		}
	}
	s.host.connectors = []host.Connector{{Name: "git"}}
	if strings.Contains(s.page("/ui/connectors"), "install examples/git<") {
		t.Error("an example that is installed is offered")
	}
}

// TestFolders: the owner chooses among directories of the host, whose names are hostile, and
// what is typed and cannot be listed leads to the home.
func TestFolders(t *testing.T) {
	s := open(t)
	s.host.folder = host.Folder{Path: "/home/me/<i>", Parent: "/home/me",
		Names: []string{"a&b=c", "../up", "#x?y"}, More: true}
	page := s.page("/ui/folders?at=" + url.QueryEscape("~/notes/"))
	if s.host.listed != "~/notes" {
		t.Errorf("%q is listed", s.host.listed)
	}
	for _, want := range []string{`data-folder-take="/home/me/&lt;i&gt;"`, "at=%2Fhome%2Fme%2F%3Ci%3E%2Fa%26b%3Dc\"",
		"%2F%23x%3Fy\"", "There are more"} {
		if !strings.Contains(page, want) {
			t.Errorf("the list lacks %s: %s", want, page)
		}
	}
	s.host.folder.Refused = "is a user's home itself"
	if page := s.page("/ui/folders?at=/refused"); s.host.listed != "" || !strings.Contains(page, "disabled") ||
		!strings.Contains(page, "home itself") {
		t.Errorf("%q: %s", s.host.listed, page)
	}
	if a := s.send("GET", "/ui/folders", ""); a.status != 401 {
		t.Errorf("a stranger: %d", a.status)
	}
	for _, at := range []string{"%00", "%ff", strings.Repeat("x", 5000)} {
		if a := s.get("/ui/folders?at=" + at); a.status != 400 {
			t.Errorf("%.10s: %d", at, a.status)
		}
	}
}
