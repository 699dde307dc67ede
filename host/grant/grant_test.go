package grant

import (
	"slices"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/network"
)

var kinds = binding.Kinds{network.Kind{}, filesystem.Kind{}, browser.Kind{}}

func manifest(t *testing.T, members string) *abi.Manifest {
	t.Helper()
	m, err := abi.ReadManifest([]byte(
		`{"protocol_version": "0.1.0", "connector_id": "x", "version": "1", "display_name": "X", ` + members + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func stream(name string) string {
	return `{"name": "` + name + `", "semantics": "append_only", "primary_key": ["id"],
		"schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}`
}

func streams(rest string) string { return `"streams": [` + stream("a") + `]` + rest }

// TestAdded: what a new version asks for beyond the old one, and
// nothing for what it asks less.
func TestAdded(t *testing.T) {
	const (
		network  = `, "runtime_requirements": {"bindings": {"network": {"hosts": ["api.example.com:443"]}}}`
		anywhere = `, "runtime_requirements": {"bindings": {"network": {"required": true}}}`
		reads    = `, "runtime_requirements": {"bindings": {"filesystem": {"mounts": [{"name": "data", "mode": "ro"}]}}}`
		changes  = `, "runtime_requirements": {"bindings": {"filesystem": {"required": true, "mounts": [{"name": "data", "mode": "rw"}]}}}`
		secret   = `, "sluice": {"secrets": [{"name": "token", "destinations": [{"origin": "https://a.example", "placements": ["body"]}]}]}`
		other    = `, "sluice": {"secrets": [{"name": "token", "destinations": [{"origin": "https://b.example", "placements": ["body"]}]}]}`
		wider    = `, "sluice": {"secrets": [{"name": "token", "destinations": [{"origin": "https://a.example", "placements": ["body", "header:x"]}]}]}`
		plain    = `, "sluice": {"secrets": [{"name": "token", "delivery": "plain"}]}`
		capture  = `, "setup": {"credential_capture": {"fields": [{"name": "password", "label": "P", "type": "password", "required": true, "secret": true, "env": ["P"]}]}}`
		answer   = `, "sluice": {"interaction_fields": {"otp.code": {"destinations": [{"origin": "https://a.example", "placements": ["body"]}]}}}`
		sealed   = `, "sluice": {"interaction_fields": {"clarification.iban": {"delivery": "sealed"}}}`
		unsaid   = `, "sluice": {"interaction_fields": {}}`
		obtained = `, "sluice": {"secrets": [{"name": "token", "oauth": {"grant": "client_credentials", "token_url": "https://a.example/t", "client_id": "c", "client_secret": "key", "scopes": ["read"]}}, {"name": "key"}]}`
		direct   = `, "sluice": {"secrets": [{"name": "token", "destinations": [{"origin": "https://a.example", "placements": ["body"]}]}]}`
		moved    = `, "sluice": {"secrets": [{"name": "token", "oauth": {"grant": "client_credentials", "token_url": "https://b.example/t", "client_id": "c", "client_secret": "key", "scopes": ["read"]}}, {"name": "key"}]}`
		broader  = `, "sluice": {"secrets": [{"name": "token", "oauth": {"grant": "client_credentials", "token_url": "https://a.example/t", "client_id": "c", "client_secret": "key", "scopes": ["read", "write"]}}, {"name": "key"}]}`
		session  = `, "sluice": {"session_tokens": [{"name": "session", "origin": "https://a.example", "path_prefix": "/login", "pointer": "/t", "placements": ["body"]}]}`
		elsehere = `, "sluice": {"session_tokens": [{"name": "session", "origin": "https://a.example", "path_prefix": "/login", "pointer": "/u", "placements": ["body"]}]}`
		browser  = `, "runtime_requirements": {"bindings": {"browser": {"hosts": ["a.example"]}}}`
		browses  = `, "runtime_requirements": {"bindings": {"browser": {"uploads": true, "downloads": true, "profile": "p", "popups": "deny", "max_actions_per_minute": 5,
			"cookie_handoff": ["a.example"], "actions": [{"name": "tick", "verb": "click", "action_type": "local_state", "idempotent": true},
			{"name": "send", "verb": "click", "action_type": "side_effect", "idempotent": false}]}}}`
	)
	for _, c := range []struct {
		name, approved, asked string
		want                  []string
	}{
		{"nothing", network, network, nil},
		{"a host", "", network, []string{"reach api.example.com:443"}},
		{"no host by name", "", anywhere, []string{"reach servers that you name, and no others"}},
		{"no host by name any more", network, anywhere, nil},
		{"a host of its own choice", anywhere, network, []string{"reach api.example.com:443"}},
		{"less", network, "", nil},
		{"a directory", "", reads, []string{"read the directory data"}},
		{"to change it", reads, changes, []string{"change files in the directory data"}},
		{"to read only", changes, reads, nil},
		{"a secret", "", secret, []string{"use the secret token", "have token sent to https://a.example (body)"}},
		{"another destination", secret, other, []string{"have token sent to https://b.example (body)"}},
		{"another placement", secret, wider, []string{"have token sent to https://a.example (header:x)"}},
		{"the value", secret, plain, []string{"see token itself"}},
		{"a captured secret", "", capture, []string{"use the secret password", "see password itself"}},
		{"an answer", "", answer, []string{"have otp.code sent to https://a.example (body)"}},
		{"an answer in the open", sealed, unsaid, []string{"see clarification.iban itself"}},
		{"all answers in the open", sealed, "", []string{"see every answer of yours itself"}},
		{"a token", "", obtained,
			[]string{"use the secret token", "have token obtained from https://a.example/t",
				"have token obtained from https://a.example/t as the client c",
				"have token obtained from https://a.example/t for the scope read",
				"have key sent to https://a.example/t (client_secret_basic)", "use the secret key"}},
		{"another token server", obtained, moved,
			[]string{"have token obtained from https://b.example/t",
				"have token obtained from https://b.example/t as the client c",
				"have token obtained from https://b.example/t for the scope read",
				"have key sent to https://b.example/t (client_secret_basic)"}},
		{"what it is obtained with", obtained, direct,
			[]string{"have token sent to https://a.example (body)",
				"use the secret token itself, not what is obtained with it"}},
		{"another scope", obtained, broader, []string{"have token obtained from https://a.example/t for the scope write"}},
		{"a session token", unsaid, session, []string{"have session sent to https://a.example (body)"}},
		{"a session token from elsewhere", session, elsehere, []string{"see session itself"}},
		{"a session token in the open", session, unsaid, []string{"see session itself"}},
		{"a browser", "", browser,
			[]string{"act in a browser of this machine, as you would: open pages of the servers it may reach, read them, click and type"}},
		{"more of a browser", browser, browses, []string{"send files of its own to pages", "take files that pages offer",
			"make requests of its own as the one who is signed in at a.example",
			"have an action count as changing nothing but the page: tick (click)",
			"have an action done twice where once seemed to fail: tick (click)"}},
		{"less of a browser", browses, browser, nil},
	} {
		var got []string
		for _, w := range Added(kinds, manifest(t, streams(c.approved)), manifest(t, streams(c.asked))) {
			got = append(got, w.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
	more := manifest(t, `"streams": [`+stream("a")+`, `+stream("b")+`]`)
	if got := Added(kinds, manifest(t, streams("")), more); len(got) != 1 || got[0] != Of(Stream, "b", "") {
		t.Errorf("a stream: %v", got)
	}
}

// TestWords: a manifest cannot draw on a terminal through what it asks for.
func TestWords(t *testing.T) {
	w := Of(Send, "a\x1b[31m", "https://x\u202e")
	if got := w.String(); got != abi.Clean(got) {
		t.Errorf("%q has control characters", got)
	}
}
