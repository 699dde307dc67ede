package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

const marker = "hunter2-was-submitted"

// Values that the manifest or the host does not take, and that nobody reads in the answer.
func TestHostileConnections(t *testing.T) {
	s, _ := connected(t)
	for name, c := range map[string]struct {
		q          host.NewConnection
		code, rule string
	}{
		"taken":    {host.NewConnection{ConnectionID: "mail"}, "conflict", ""},
		"path":     {host.NewConnection{ConnectionID: "../" + marker}, "validation_error", "slug"},
		"long id":  {host.NewConnection{ConnectionID: strings.Repeat("a", 65)}, "validation_error", "slug"},
		"reserved": {host.NewConnection{ConnectionID: "conformance-x"}, "validation_error", "reserved"},
		"mode":     {host.NewConnection{Mode: marker}, "validation_error", "value_unknown"},
		"no object": {host.NewConnection{Settings: json.RawMessage(`["` + marker + `"]`)},
			"validation_error", "object"},
		"member twice": {host.NewConnection{Settings: json.RawMessage(`{"account":"` + marker + `","account":"b"}`)},
			"validation_error", "object"},
		"setting missing": {host.NewConnection{Settings: json.RawMessage(`{"x":"` + marker + `"}`)},
			"validation_error", "setting_invalid"},
		"setting of a type": {host.NewConnection{Settings: json.RawMessage(`{"account":"a","depth":"` + marker + `"}`)},
			"validation_error", "setting_invalid"},
		"too large": {host.NewConnection{Settings: json.RawMessage(`{"account":"` + strings.Repeat("a", 300<<10) +
			`"}`)}, "validation_error", "too_large"},
		"since":              {host.NewConnection{CollectionSince: marker}, "validation_error", "time"},
		"profile":            {host.NewConnection{ProfileName: "../" + marker}, "validation_error", "profile_name_invalid"},
		"canary":             {host.NewConnection{LeakCanary: marker}, "validation_error", "value_unknown"},
		"name with controls": {host.NewConnection{DisplayName: marker + "\x1b[2J"}, "validation_error", "text"},
	} {
		c.q.ConnectorName = "mail"
		if c.q.ConnectionID == "" {
			c.q.ConnectionID = "other"
		}
		_, err := s.CreateConnection(host.As(t.Context(), somebody), c.q)
		if refused(t, err, c.code, c.rule, marker); t.Failed() {
			t.Fatal(name)
		}
	}
	_, err := s.CreateConnection(host.As(t.Context(), somebody), host.NewConnection{ConnectorName: "nobody"})
	absent(t, err)
	_, err = s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail", ConnectionID: "other", Version: "7"})
	absent(t, err)
	if all, err := s.Connections(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d connections, %v", len(all), err)
	}
}

// TestFurtherConnection: a connection without an id is named after its connector, a
// further one gets a number that is nobody's, also nobody's who is gone.
func TestFurtherConnection(t *testing.T) {
	s, h := connected(t)
	create := func(id string) string {
		t.Helper()
		c, err := s.CreateConnection(host.As(t.Context(), somebody),
			host.NewConnection{ConnectorName: "mail", ConnectionID: id})
		if err != nil {
			t.Fatal(err)
		}
		return c.ConnectionID
	}
	create("mail-3")
	if got := create(""); got != "mail-2" {
		t.Errorf("the second: %s", got)
	}
	// What one collected that was deleted is not taken for the next one's.
	row := store.Run{ID: "run_gone", ConnectionID: "mail-4", ConnectorID: "x", Status: "active", Phase: "running",
		StartedAt: time.Now(), TriggerKind: "manual", Attempt: 1}
	if _, err := h.Store.Acquire(t.Context(), row, "host", "boot", time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := create(""); got != "mail-5" {
		t.Errorf("the one after: %s", got)
	}
	name := strings.Repeat("m", 64)
	upload(t, s, rich(name, "1"))
	for _, want := range []string{name, name[:62] + "-2"} {
		c, err := s.CreateConnection(host.As(t.Context(), somebody), host.NewConnection{ConnectorName: name})
		if err != nil || c.ConnectionID != want {
			t.Errorf("%s: %v, want %s", c.ConnectionID, err, want)
		}
	}
}

// TestHomeOfBindings: a ~ is the home of who runs the host, for programs and pages.
func TestHomeOfBindings(t *testing.T) {
	s, _ := connected(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, "mail"), 0o700); err != nil {
		t.Fatal(err)
	}
	approve := func(path string) (host.Bindings, error) {
		return s.ApproveBindings(host.As(t.Context(), somebody), "mail",
			host.Bindings{Filesystem: &host.FilesystemBinding{Mounts: []host.Mount{{Name: "in", HostPath: path}}}})
	}
	b, err := approve("~/mail")
	if err != nil || len(b.Filesystem.Mounts) != 1 {
		t.Fatalf("%+v %v", b.Filesystem, err)
	}
	if got, want := b.Filesystem.Mounts[0].HostPath, filepath.Join(home, "mail"); got != want {
		t.Errorf("~/mail is %s, want %s", got, want)
	}
	for path, rule := range map[string]string{"~": "directory_refused", "~/../mail": "path", "~bob/mail": "path",
		"~/none": "directory_missing"} {
		_, err := approve(path)
		refused(t, err, "validation_error", rule, home)
	}
}

// A connection is made, shown and changed; a change of an old revision is refused.
func TestConnection(t *testing.T) {
	s, _ := service(t)
	upload(t, s, rich("mail", "1"))
	c, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail", DisplayName: "My mail", Mode: "test", CollectionSince: "2026-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	if c.ConnectionID != "mail" || c.ConnectorName != "mail" || c.Version != "1" || c.DisplayName != "My mail" ||
		c.Mode != "test" || !c.Enabled || c.Ready || c.Grant != nil ||
		string(c.Settings) != "{}" || c.ProfileName != "mail" || c.LeakCanary != "enforce" || c.Revision != 1 ||
		len(c.Secrets) != 3 || c.CollectionSince != "2026-01-01" {
		t.Errorf("%+v", c)
	}
	// Every code that would refuse a start, in the order of the checks.
	if want := []string{"grant_invalid", "binding_not_approved", "setting_missing",
		"secret_missing"}; !slices.Equal(c.NotReady, want) {
		t.Errorf("not ready: %v, want %v", c.NotReady, want)
	}
	name, off, old := "Renamed", false, uint64(1)
	c, err = s.ChangeConnection(host.As(t.Context(), somebody), "mail",
		host.ChangeConnection{DisplayName: &name, Enabled: &off, Settings: json.RawMessage(` {"account": "a"}`)}, &old)
	if err != nil || c.DisplayName != name || c.Enabled || string(c.Settings) != `{"account":"a"}` || c.Revision != 2 ||
		c.NotReady[0] != "connection_disabled" || slices.Contains(c.NotReady, "setting_missing") {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = s.ChangeConnection(host.As(t.Context(), somebody), "mail", host.ChangeConnection{DisplayName: &name}, &old)
	refused(t, err, "precondition_failed", "")
	if again, err := s.Connection(t.Context(), "mail"); err != nil || again.Revision != 2 {
		t.Errorf("a change that was refused counts: %d, %v", again.Revision, err)
	}
	_, err = s.Connection(t.Context(), "nobody")
	absent(t, err)
	_, err = s.ChangeConnection(host.As(t.Context(), somebody), "nobody", host.ChangeConnection{}, nil)
	absent(t, err)
	wrote(t, s, "connection.created")
	if page, _, err := s.AuditEntries(t.Context(), host.AuditQuery{Action: "connection.changed"}); err != nil ||
		len(page) != 1 || page[0].Details["code"] != "displayName,settings,enabled" {
		t.Errorf("%+v, %v", page, err)
	}
}

// Of many that make one connection at once, one does.
func TestCreatedOnce(t *testing.T) {
	s, _ := service(t)
	upload(t, s, rich("mail", "1"))
	var all sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		all.Go(func() {
			_, results[i] = s.CreateConnection(host.As(t.Context(), somebody),
				host.NewConnection{ConnectorName: "mail", ConnectionID: "one"})
		})
	}
	all.Wait()
	made := 0
	for _, err := range results {
		if err == nil {
			made++
		} else {
			refused(t, err, "conflict", "")
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

// A connection that is erased leaves no secret, and another connector does not get what one
// collected, nor its secrets.
func TestDeleteConnection(t *testing.T) {
	s, h := connected(t)
	for _, erase := range []bool{false, true} {
		if err := s.SetSecret(host.As(t.Context(), somebody), "mail", "token", []byte(marker)); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteConnection(host.As(t.Context(), somebody), "mail", erase); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(h.DataDir, "vault", "mail", "*.age")); err != nil || len(left) > 0 {
			t.Errorf("erase %v: secrets are left: %v, %v", erase, left, err)
		}
		absent(t, s.DeleteConnection(host.As(t.Context(), somebody), "mail", false))
		if c, err := s.CreateConnection(host.As(t.Context(), somebody),
			host.NewConnection{ConnectorName: "mail"}); err != nil || c.Secrets[0].Set {
			t.Fatalf("%+v, %v", c.Secrets, err)
		}
	}
	wrote(t, s, "connection.deleted")
	wrote(t, s, "secret.removed")

	run := store.Run{ID: "run_1", ConnectorID: "other", ConnectionID: "used", Status: "active"}
	if _, err := h.Store.Acquire(t.Context(), run, "h", "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateConnection(host.As(t.Context(), somebody),
		host.NewConnection{ConnectorName: "mail", ConnectionID: "used"})
	refused(t, err, "conflict", "")

	run = store.Run{ID: "run_2", ConnectorID: "mail", ConnectionID: "mail", Status: "active"}
	if _, err := h.Store.Acquire(t.Context(), run, "h", "b", time.Minute); err != nil {
		t.Fatal(err)
	}
	if r := refused(t, s.DeleteConnection(host.As(t.Context(), somebody), "mail", true), "run_already_active",
		""); fmt.Sprint(r.Details["activeRunId"]) != "run_2" {
		t.Errorf("%v", r.Details)
	}
	refused(t, s.ResetState(host.As(t.Context(), somebody), "mail", "", ""), "run_already_active", "")
	c, err := s.Connection(t.Context(), "mail")
	if err != nil || c.ActiveRunID != "run_2" || !slices.Contains(c.NotReady, "run_already_active") {
		t.Errorf("%+v, %v", c, err)
	}
}

// What could stand in an approval.
func TestHostileGrants(t *testing.T) {
	s, _ := connected(t)
	past := time.Now().Add(-time.Hour)
	grant := func(scope string) host.GrantTerms { return host.GrantTerms{Scope: json.RawMessage(scope)} }
	for name, c := range map[string]struct {
		q    host.GrantTerms
		rule string
	}{
		"no JSON":       {grant(`{"streams":`), "object"},
		"a list":        {grant(`[]`), "object"},
		"other members": {grant(`{"streams":[{"name":"mail"}],"` + marker + `":1}`), "member_unknown"},
		"none":          {grant(`{"streams":[]}`), "scope_empty"},
		"stream":        {grant(`{"streams":[{"name":"` + marker + `"}]}`), "scope_stream_unknown"},
		"no name":       {grant(`{"streams":[{}]}`), "scope_stream_unknown"},
		"twice":         {grant(`{"streams":[{"name":"mail"},{"name":"mail"}]}`), "scope_duplicate_stream"},
		"* with others": {grant(`{"streams":[{"name":"mail"},{"name":"*"}]}`), "scope_wildcard"},
		"* with fields": {grant(`{"streams":[{"name":"*","fields":["id"]}]}`), "scope_wildcard"},
		"* in a range": {grant(`{"streams":[{"name":"*","time_range":{"since":"2026-01-01"}}]}`),
			"scope_time_range_unsupported"},
		"view and fields": {grant(`{"streams":[{"name":"mail","view":"brief","fields":["id"]}]}`), "view_and_fields"},
		"view":            {grant(`{"streams":[{"name":"mail","view":"` + marker + `"}]}`), "view_unknown"},
		"view of another": {grant(`{"streams":[{"name":"rows","view":"brief"}]}`), "view_unknown"},
		"field":           {grant(`{"streams":[{"name":"mail","fields":["` + marker + `"]}]}`), "field_unknown"},
		"fields":          {grant(`{"streams":[{"name":"mail","fields":"` + marker + `"}]}`), "scope_fields_invalid"},
		"entry member":    {grant(`{"streams":[{"name":"mail","necessity":"` + marker + `"}]}`), "member_unknown"},
		"time": {grant(`{"streams":[{"name":"mail","time_range":{"since":"` + marker + `"}}]}`),
			"scope_time_range_invalid"},
		"resources": {grant(`{"streams":[{"name":"mail","resources":{"` + marker + `":1}}]}`), "scope_resources_invalid"},
		"too large": {grant(`{"streams":[{"name":"mail","resources":["` + strings.Repeat("a", 2<<20) + `"]}]}`), "too_large"},
		"mode":      {host.GrantTerms{AccessMode: marker}, "value_unknown"},
		"past":      {host.GrantTerms{ExpiresAt: &past}, "past"},
	} {
		_, err := s.GrantConnection(host.As(t.Context(), somebody), "mail", c.q)
		if refused(t, err, "validation_error", c.rule, marker); t.Failed() {
			t.Fatal(name, err)
		}
	}
	if c, err := s.Connection(t.Context(), "mail"); err != nil || c.Grant != nil ||
		!slices.Contains(c.NotReady, "grant_invalid") {
		t.Errorf("granted: %+v, %v", c.Grant, err)
	}
}

// A grant is approved and revoked, and what a grant may not be is refused.
func TestGrants(t *testing.T) {
	s, h := connected(t)
	until := time.Now().Add(time.Hour)
	for scope, want := range map[string]string{
		`{"streams":[{"name":"*"}]}`: `{"streams":[{"name":"mail"},{"name":"rows"}]}`,
		`{"streams":[{"name":"mail","view":"brief","resources":["in\u0062ox"]}]}`: `{"streams":[{"name":"mail","fields":["folder","sent"],"resources":["in\u0062ox"]}]}`,
		`{"streams":[{"fields":[],"name":"mail"}]}`:                               `{"streams":[{"name":"mail","fields":[]}]}`,
		`null`: `null`,
		``:     `null`,
	} {
		g, err := s.GrantConnection(host.As(t.Context(), somebody), "mail",
			host.GrantTerms{Scope: json.RawMessage(scope), AccessMode: "single_use", ExpiresAt: &until})
		if err != nil || string(g.Scope) != want || g.AccessMode != "single_use" || g.Status != "active" ||
			g.ApprovedBy != somebody.ID || !strings.HasPrefix(g.GrantID, "gra_") || !g.ExpiresAt.Equal(until) {
			t.Errorf("%s: %s, %+v, %v", scope, g.Scope, g, err)
		}
	}
	first, err := s.GrantConnection(host.As(t.Context(), somebody), "mail", host.GrantTerms{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.GrantConnection(host.As(t.Context(), somebody), "mail", host.GrantTerms{})
	if err != nil || second.GrantID == first.GrantID {
		t.Fatal(second, err)
	}
	if c := stored(t, h, "mail"); c.Grant.ID != "" {
		t.Errorf("state would be lost: namespace %q", c.Grant.ID)
	}
	// One that was replaced is gone, and nothing is taken back by it.
	for _, old := range []string{first.GrantID, "gra_nobody", "gra_own"} {
		if err := s.RevokeGrant(host.As(t.Context(), somebody), "mail", old); err != nil {
			t.Error(err)
		}
	}
	if c := stored(t, h, "mail"); c.Grant.Fault(time.Now()) != "" {
		t.Errorf("revoked by an old id: %+v", c.Grant)
	}
	if _, err := s.ApproveBindings(host.As(t.Context(), somebody), "mail",
		host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"api.mail.example"}}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also when it is revoked already
		if err := s.RevokeGrant(host.As(t.Context(), somebody), "mail", second.GrantID); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Connection(t.Context(), "mail")
	if err != nil || c.Grant.Status != "revoked" || !slices.Contains(c.NotReady, "grant_revoked") ||
		len(c.Bindings.Network.Hosts) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if n := strings.Count(fmt.Sprint(actions(t, s)), "grant.revoked"); n != 1 {
		t.Errorf("written down %d times", n)
	}
	absent(t, s.RevokeGrant(host.As(t.Context(), somebody), "nobody", ""))
}

// What a connection's connector asks for is known without it, so that nobody is told that it asks for nothing.
func TestRequestedUninstalled(t *testing.T) {
	s, h := connected(t)
	before, err := s.Requested(t.Context(), "mail")
	if err != nil || len(before.Words) == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	installed, err := h.Store.Connectors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range installed {
		if err := h.Store.DeleteConnector(t.Context(), k.ID, k.Bundled); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Requested(t.Context(), "mail")
	if d := cmp.Diff(before, after); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// A connection becomes ready, one approval after another.
func TestApprovals(t *testing.T) {
	s, h := connected(t)
	in, out := t.TempDir(), t.TempDir()
	no := false
	all := host.Bindings{
		Network: &host.NetworkBinding{Hosts: []string{"https://api.mail.example:443", "192.168.1.7",
			"eu.files.example", "*.files.example"}},
		Filesystem: &host.FilesystemBinding{Mounts: []host.Mount{{Name: "in", HostPath: in, Mode: "ro"},
			{Name: "out", HostPath: out, Mode: "rw"}}},
		Interactive:       &no,
		Destinations:      map[string][]abi.Destination{"token": {{Origin: "https://api.mail.example"}}},
		PlainAcknowledged: []string{"seen"},
	}
	asked, err := s.Requested(t.Context(), "mail")
	if err != nil || len(asked.Streams) != 2 || !slices.Equal(asked.Streams[0].Views, []string{"brief"}) ||
		!asked.Streams[0].TimeRange || asked.Streams[1].Resources ||
		!slices.Contains(asked.Words, "reach api.mail.example") || !slices.Equal(asked.Missing, asked.Words) {
		t.Errorf("%+v, %v", asked, err)
	}
	if _, err := s.GrantConnection(host.As(t.Context(), somebody), "mail",
		host.GrantTerms{Scope: json.RawMessage(`{"streams":[{"name":"mail"}]}`)}); err != nil {
		t.Fatal(err)
	}
	got, err := s.ApproveBindings(host.As(t.Context(), somebody), "mail", all)
	if err != nil {
		t.Fatal(err)
	}
	all.Network.Hosts[0] = "api.mail.example"
	all.Destinations["token"][0] = abi.Destination{Origin: "https://api.mail.example", PathPrefix: "/v2/",
		Placements: []string{"header:authorization"}}
	if d := cmp.Diff(all, got); d != "" {
		t.Error(d)
	}
	if a := stored(t, h, "mail").Approved.Mounts[0]; a.Inode == 0 || a.Writable {
		t.Errorf("the directory is not the one that was approved: %+v", a)
	}
	asked, err = s.Requested(t.Context(), "mail")
	if want := []string{"collect rows", "use the secret token", "use the secret seen",
		"use the secret unused"}; err != nil || !slices.Equal(asked.Missing, want) {
		t.Errorf("missing %q, want %q", asked.Missing, want)
	}
	if err := s.SetSecret(host.As(t.Context(), somebody), "mail", "token", []byte("t")); err != nil {
		t.Fatal(err)
	}
	c, err := s.Connection(t.Context(), "mail")
	if err != nil || !c.Ready || len(c.NotReady) > 0 || len(c.Secrets[0].Destinations) != 1 || !c.Secrets[0].Set ||
		c.Secrets[0].SetAt == nil || c.Secrets[1].Delivery != "plain" {
		t.Errorf("%v %+v, %v", c.NotReady, c.Secrets, err)
	}
	// A PUT replaces: what it does not name is taken back.
	was := stored(t, h, "mail").Withdrawals
	got, err = s.ApproveBindings(host.As(t.Context(), somebody), "mail", host.Bindings{Network: all.Network})
	if err != nil || len(got.Filesystem.Mounts) > 0 || !*got.Interactive || got.PlainAcknowledged != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if now := stored(t, h, "mail").Withdrawals; now != was+1 {
		t.Errorf("withdrawals %d, then %d", was, now)
	}
	wrote(t, s, "grant.revoked")
	if c, err := s.Connection(t.Context(), "mail"); err != nil ||
		!slices.Equal(c.NotReady, []string{"binding_not_approved"}) {
		t.Errorf("%v, %v", c.NotReady, err)
	}

	// A version that asks for more waits for its owner.
	if _, err := s.ApproveBindings(host.As(t.Context(), somebody), "mail", all); err != nil {
		t.Fatal(err)
	}
	upload(t, s, strings.Replace(rich("mail", "2"), `{"name": "unused"}`, `{"name": "unused"}, {"name": "more"}`, 1))
	c, err = s.Connection(t.Context(), "mail")
	if err != nil || !slices.Equal(c.NotReady, []string{"binding_not_approved"}) || c.Version != "1" {
		t.Errorf("%v, version %s, %v", c.NotReady, c.Version, err)
	}
	if asked, err := s.Requested(t.Context(), "mail"); err != nil ||
		!slices.Contains(asked.Missing, "use the secret more") {
		t.Errorf("%v, %v", asked.Missing, err)
	}
	if _, err := s.GrantConnection(host.As(t.Context(), somebody), "mail", host.GrantTerms{}); err != nil {
		t.Fatal(err)
	}
	if c, err = s.Connection(t.Context(), "mail"); err != nil || !c.Ready || c.Version != "2" {
		t.Errorf("%v, version %s, %v", c.NotReady, c.Version, err)
	}
	if codes, err := h.NotReady(t.Context(), "mail"); err != nil || len(codes) > 0 {
		t.Errorf("%v, %v", codes, err)
	}

	// Without its module it does not run.
	if err := os.RemoveAll(filepath.Join(h.DataDir, "modules")); err != nil {
		t.Fatal(err)
	}
	if codes, err := h.NotReady(t.Context(), "mail"); err != nil || codes[0] != "connector_not_runnable" {
		t.Errorf("%v, %v", codes, err)
	}
}

// Where only the owner knows the server, the owner says it.
func TestServerOfTheOwner(t *testing.T) {
	s, _ := service(t)
	upload(t, s, manifestOf("dav", "1", `"network": {"required": true}`,
		`{"secrets": [{"name": "password", "destinations": [{"origin": "owner", "placements": ["header:authorization"]}]}]}`))
	if _, err := s.CreateConnection(host.As(t.Context(), somebody), host.NewConnection{ConnectorName: "dav"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GrantConnection(host.As(t.Context(), somebody), "dav", host.GrantTerms{}); err != nil {
		t.Fatal(err)
	}
	send := "have password sent to the server that you name (header:authorization)"
	if asked, err := s.Requested(t.Context(), "dav"); err != nil || !slices.Contains(asked.Missing, send) ||
		asked.Secrets[0].Destinations[0].Origin != "owner" {
		t.Errorf("%+v, %v", asked, err)
	}
	got, err := s.ApproveBindings(host.As(t.Context(), somebody), "dav", host.Bindings{
		Network:      &host.NetworkBinding{Hosts: []string{"dav.home.example", "http://127.0.0.1:8080"}},
		Destinations: map[string][]abi.Destination{"password": {{Origin: "https://DAV.home.example:443"}}},
	})
	if err != nil || got.Destinations["password"][0].Origin != "https://dav.home.example" ||
		got.Destinations["password"][0].Placements[0] != "header:authorization" {
		t.Errorf("%+v, %v", got, err)
	}
	if asked, err := s.Requested(t.Context(), "dav"); err != nil || slices.Contains(asked.Missing, send) {
		t.Errorf("%v, %v", asked.Missing, err)
	}
	if c, err := s.Connection(t.Context(), "dav"); err != nil || len(c.Secrets[0].Destinations) != 1 ||
		c.Secrets[0].Destinations[0].Origin != "https://dav.home.example" {
		t.Errorf("%+v, %v", c.Secrets, err)
	}
}

// State is reset and a mark dismissed, both in the audit log.
func TestStateAndAttention(t *testing.T) {
	s, _ := connected(t)
	for _, stream := range []store.Stream{"mail", ""} {
		if err := s.ResetState(host.As(t.Context(), somebody), "mail", "gra_own", stream); err != nil {
			t.Fatal(err)
		}
	}
	absent(t, s.ResetState(host.As(t.Context(), somebody), "nobody", "", ""))
	wrote(t, s, "state.reset")
	if err := s.DismissAttention(host.As(t.Context(), somebody), "mail"); err != nil {
		t.Errorf("nothing to dismiss: %v", err)
	}
	app.SetAttention(s, marks{"mail": true})
	c, err := s.Connection(t.Context(), "mail")
	if err != nil || !c.NeedsAttention || c.Revision != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := s.DismissAttention(host.As(t.Context(), somebody), "mail"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Connection(t.Context(), "mail"); err != nil || c.NeedsAttention {
		t.Errorf("%+v, %v", c, err)
	}
	absent(t, s.DismissAttention(host.As(t.Context(), somebody), "nobody"))
}

// marks are kept in memory.
type marks map[store.ConnectionID]bool

func (m marks) NeedsAttention(_ context.Context, id store.ConnectionID) (bool, error) {
	return m[id], nil
}

func (m marks) DismissAttention(_ context.Context, id store.ConnectionID) error {
	delete(m, id)
	return nil
}

// The connection of one run of a conformance connector is nobody's.
func TestTemporaryConnection(t *testing.T) {
	s, h := connected(t)
	own := store.Connection{ID: "conformance-noop-1", ConnectorID: "mail", Enabled: true, Temporary: true}
	if err := h.Store.PutConnection(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Connections(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	_, err := s.Connection(t.Context(), own.ID)
	absent(t, err)
	_, err = s.GrantConnection(host.As(t.Context(), somebody), own.ID, host.GrantTerms{})
	absent(t, err)
	_, err = s.ApproveBindings(host.As(t.Context(), somebody), own.ID, host.Bindings{})
	absent(t, err)
	_, err = h.NotReady(t.Context(), own.ID)
	absent(t, err)
	absent(t, s.SetSecret(host.As(t.Context(), somebody), own.ID, "token", []byte("x")))
	absent(t, s.RevokeGrant(host.As(t.Context(), somebody), own.ID, ""))
	absent(t, s.ResetState(host.As(t.Context(), somebody), own.ID, "", ""))
	absent(t, s.DeleteConnection(host.As(t.Context(), somebody), own.ID, false))
}
