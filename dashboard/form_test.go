package dashboard_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/store"
)

func (s *site) connect() {
	var asked host.RequestedBinding
	browser.Kind{}.Request(abi.Binding{Browser: &abi.BrowserRequest{Uploads: true,
		CookieHandoff: []string{"shop.example"}}}, &asked)
	s.host.connections = []host.Connection{{ConnectionID: "mail", ConnectorName: "mail"}}
	s.host.requested = host.Requested{
		Streams: []host.RequestedStream{{Name: "letters", Fields: []string{"from", "id", "subject"}, TimeRange: true},
			{Name: "folders", Fields: []string{"id"}}},
		Bindings: map[string]host.RequestedBinding{"network": {Hosts: []string{"a.example", "b.example"}}, "interactive": {},
			"browser":    asked,
			"filesystem": {Mounts: []host.RequestedMount{{Name: "in"}, {Name: "out", Writable: true}}}},
		Secrets: []host.Secret{{Name: "token", Delivery: "plain"},
			{Name: "password", Delivery: "sealed",
				Destinations: []abi.Destination{{Origin: abi.OwnerOrigin, Placements: []string{"header"}}}}},
	}
}

// The page says what a browser means before it is given.
func TestGrantPageOfBrowser(t *testing.T) {
	s := open(t)
	s.connect()
	page := s.get("/ui/connections/mail/grant").body
	for _, words := range []string{"It may act in a browser", "It may send files of its own to pages.",
		"as the one who is signed in at shop.example",
		"is kept for this connection alone", `name="browser"`} {
		if !strings.Contains(page, words) {
			t.Errorf("the page does not say %q", words)
		}
	}
}

// TestGrantForm: what is not ticked is not given.
func TestGrantForm(t *testing.T) {
	s := open(t)
	s.connect()
	a := s.post("/ui/connections/mail/grant", map[string][]string{
		"stream.0": {"true"}, "field.0": {"id", "subject", "made-up"}, "since.0": {"2026-01-31"}, "host.1": {"true"},
		"moreHosts": {" c.example \n\n"}, "mount.0": {"/in"}, "write.0": {"true"}, "mount.1": {"/out"}, "write.1": {"true"},
		"plain.0": {"true"}, "plain.1": {"true"}, "origin.1": {"https://own.example"}, "single": {"true"},
		"expires": {"2099-12-31"}, "browser": {"true"}, "profile": {"Mine"},
	})
	if a.status != 204 || a.header.Get("HX-Redirect") != "/ui/connections/mail/start" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got, want := string(s.host.terms.Scope),
		`{"streams":[{"name":"letters","fields":["id","subject"],"time_range":{"since":"2026-01-31T00:00:00Z"}}]}`; got != want {
		t.Errorf("scope %s, want %s", got, want)
	}
	if s.host.terms.AccessMode != "single_use" ||
		!s.host.terms.ExpiresAt.Equal(time.Date(2099, 12, 31, 23, 59, 59, 0, time.UTC)) {
		t.Errorf("terms %+v", s.host.terms)
	}
	no := false
	want := host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"b.example", "c.example"}}, Interactive: &no,
		Filesystem: &host.FilesystemBinding{Mounts: []host.Mount{{Name: "in", HostPath: "/in", Mode: "ro"},
			{Name: "out", HostPath: "/out", Mode: "rw"}}},
		Destinations: map[string][]abi.Destination{"password": {{Origin: "https://own.example",
			Placements: []string{"header"}}}}, PlainAcknowledged: []string{"token"},
		Browser: &host.BrowserBinding{Profile: "Mine"}}
	if !reflect.DeepEqual(s.host.bindings, want) {
		t.Errorf("bindings %+v, want %+v", s.host.bindings, want)
	}
	s.post("/ui/connections/mail/grant",
		map[string][]string{"stream.0": {"true"}, "allFields.0": {"true"}, "stream.1": {"true"}, "allFields.1": {"true"}})
	if s.host.terms.Scope != nil || s.host.terms.AccessMode != "continuous" || s.host.bindings.PlainAcknowledged != nil ||
		s.host.bindings.Browser != nil || len(s.host.bindings.Network.Hosts) != 0 {
		t.Errorf("everything: %s, %+v", s.host.terms.Scope, s.host.bindings)
	}
	for name, fields := range map[string]map[string][]string{
		"stream.0": {}, "field.0": {"stream.0": {"true"}},
		"since.0": {"stream.0": {"true"}, "allFields.0": {"true"}, "since.0": {"soon"}},
		"expires": {"stream.0": {"true"}, "allFields.0": {"true"}, "expires": {"31.12."}},
	} {
		s.host.terms = host.GrantTerms{}
		if a := s.post("/ui/connections/mail/grant", fields); a.status != 400 ||
			!strings.Contains(a.body, `"path":"`+name+`"`) || s.host.terms.AccessMode != "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestRefusedBinding: what the host refuses is said at the field of the form.
func TestRefusedBinding(t *testing.T) {
	s := open(t)
	s.connect()
	path := "filesystem.mounts[0].hostPath"
	s.host.refuse = host.Refuse("validation_error", "%s: want a directory", path).With("fields",
		[]map[string]string{{"path": path, "rule": "invalid"}})
	a := s.post("/ui/connections/mail/grant",
		map[string][]string{"stream.0": {"true"}, "allFields.0": {"true"}, "mount.1": {"/out"}})
	if a.status != 400 || !strings.Contains(a.body, `"path":"mount.1"`) ||
		!strings.Contains(a.body, `"message":"Want a directory"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestScheduleShown: the form has the interval as it is, so that whoever saves it
// changes nothing.
func TestScheduleShown(t *testing.T) {
	s := open(t)
	s.connect()
	if err := s.store.PutConnection(t.Context(),
		store.Connection{ID: "mail", ConnectorID: "x", Manifest: []byte(`{}`), Settings: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	for seconds, want := range map[int64][2]string{5430: {"5430", "seconds"}, 5400: {"90", "minutes"},
		7200: {"2", "hours"}, 172800: {"2", "days"}} {
		s.host.connections[0].Schedule = &host.Schedule{ScheduleTerms: host.ScheduleTerms{IntervalSeconds: seconds}}
		a := s.get("/ui/connections/mail")
		if a.status != 200 || !strings.Contains(a.body, `value="`+want[0]+`" class="narrow"`) ||
			!strings.Contains(a.body, "<option selected>"+want[1]) {
			t.Errorf("%d seconds are not shown as %v: %d", seconds, want, a.status)
		}
		s.post("/ui/connections/mail/schedule",
			map[string][]string{"kind": {"interval"}, "every": {want[0]}, "unit": {want[1]}})
		if got := s.host.schedule.IntervalSeconds; got == nil || *got != seconds {
			t.Errorf("%d seconds are saved as %v", seconds, got)
		}
	}
}

// TestScheduleForm: an interval or a cron expression, and errors at their fields.
func TestScheduleForm(t *testing.T) {
	s := open(t)
	s.connect()
	if a := s.post("/ui/connections/mail/schedule",
		map[string][]string{"kind": {"interval"}, "every": {"2"}, "unit": {"hours"}, "timezone": {"Europe/Berlin"},
			"cron": {"x"}}); a.status != 204 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if d := s.host.schedule; *d.IntervalSeconds != 7200 || d.Cron != "" || d.Timezone != "" || !*d.Enabled || *d.CatchUp {
		t.Errorf("interval: %+v", d)
	}
	s.post("/ui/connections/mail/schedule",
		map[string][]string{"kind": {"cron"}, "cron": {"0 7 * * *"}, "timezone": {"Europe/Berlin"},
			"catchUp": {"true"}, "retries": {"3"}})
	if d := s.host.schedule; d.IntervalSeconds != nil || d.Cron != "0 7 * * *" || d.Timezone != "Europe/Berlin" ||
		!*d.CatchUp || *d.MaxRetries != 3 {
		t.Errorf("cron: %+v", d)
	}
	for name, fields := range map[string]map[string][]string{"every": {"kind": {"interval"}, "unit": {"hours"}},
		"cron": {"kind": {"cron"}}, "kind": {}, "retries": {"kind": {"cron"}, "cron": {"x"}, "retries": {"many"}}} {
		if a := s.post("/ui/connections/mail/schedule", fields); a.status != 400 ||
			!strings.Contains(a.body, `"path":"`+name+`"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	s.host.refuse = host.Refuse("validation_error", "cron: no such day").With("fields",
		[]map[string]string{{"path": "cron", "rule": "invalid"}})
	if a := s.post("/ui/connections/mail/schedule",
		map[string][]string{"kind": {"cron"}, "cron": {"x"}}); a.status != 400 || !strings.Contains(a.body, `"path":"cron"`) {
		t.Errorf("what the host refuses: %d %s", a.status, a.body)
	}
}

// TestSecretForm: the value reaches the host as it was typed, and comes back
// nowhere.
func TestSecretForm(t *testing.T) {
	s := open(t)
	s.connect()
	a := s.post("/ui/connections/mail/secret", map[string][]string{"name": {"token"}, "value": {" s3cr3t "}})
	if a.status != 204 || string(s.host.secret) != " s3cr3t " {
		t.Errorf("%d %q", a.status, s.host.secret)
	}
	if a := s.post("/ui/connections/mail/secret", map[string][]string{"name": {"token"}}); a.status != 400 {
		t.Errorf("nothing: %d", a.status)
	}
}

// TestKeyIsShownOnce: in the answer that makes it, and on no page.
func TestKeyIsShownOnce(t *testing.T) {
	s := open(t)
	a := s.post("/ui/keys", map[string][]string{"name": {"backup"}, "scopes": {"records:read", "runs:read"}})
	at := strings.Index(a.body, `value="`)
	if a.status != 200 || at < 0 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	key, _, _ := strings.Cut(a.body[at+7:], `"`)
	page := s.page("/ui/keys")
	if !strings.Contains(page, "backup") || !strings.Contains(page, "records:read") || len(key) < 40 ||
		strings.Contains(page, key) {
		t.Errorf("the list of keys does not fit; the key has %d characters", len(key))
	}
	if a := s.send("GET", "/ui/", "", "Authorization", "Bearer "+key); a.status != 403 {
		t.Errorf("a key opens pages: %d", a.status)
	}
	if a := s.post("/ui/keys", map[string][]string{"name": {"x"}, "scopes": {"none:such"}}); a.status != 400 {
		t.Errorf("an unknown scope: %d", a.status)
	}
}

// TestDirectoryAsTyped: what the host is asked for has no slash at its end.
func TestDirectoryAsTyped(t *testing.T) {
	s := open(t)
	s.connect()
	for typed, want := range map[string]string{"~/notes/": "~/notes", " /srv/mail// ": "/srv/mail", "/": "/", "~": "~"} {
		s.post("/ui/connections/mail/grant",
			map[string][]string{"stream.0": {"true"}, "allFields.0": {"true"}, "mount.0": {typed}})
		if got := s.host.bindings.Filesystem.Mounts; len(got) != 1 || got[0].HostPath != want {
			t.Errorf("%q is %+v, want %s", typed, got, want)
		}
	}
}

// TestNoIdIsAskedFor: a connection is made with a name or without, and an id is for
// who wants one.
func TestNoIdIsAskedFor(t *testing.T) {
	s := open(t)
	s.host.connectors = []host.Connector{{Name: "mail", Manifest: []byte(`{}`)}}
	page := s.page("/ui/connectors/mail/connect")
	id := regexp.MustCompile(`<input name="connectionId"[^>]*>`).FindString(page)
	if id == "" || strings.Contains(id, "required") || strings.Index(page, "<details>") > strings.Index(page, id) {
		t.Errorf("an id is asked for: %s", id)
	}
}
