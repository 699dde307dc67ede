package abi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// example is a manifest that uses every member.
const example = `{"protocol_version": "0.1.0", "connector_id": "https://connectors.example/mailbox", "connector_key": "mailbox",
 "version": "1.4.0", "display_name": "Example Mailbox", "x_unknown": {"kept": true},
 "runtime_requirements": {"bindings": {"network": {"required": true, "hosts": ["api.mail.example:443"]}, "interactive": {"required": false},
  "filesystem": {"mounts": [{"name": "data", "mode": "rw", "purpose": "reading"}, {"name": "more"}]}, "x/teapot": {}}},
 "capabilities": {"human_interaction": ["otp"], "refresh_policy": {"recommended_mode": "automatic"}},
 "setup": {"credential_capture": {"fields": [{"name": "user", "secret": false}, {"name": "token", "label": "Token", "secret": true, "required": true, "env": ["TOKEN"]}]}},
 "reason_display_messages": {"rate_limited": "The site asked us to slow down."},
 "streams": [
  {"name": "messages", "semantics": "append_only", "primary_key": ["id"], "consent_time_field": "sent_at", "incremental": true, "cursor_field": "sent_at",
   "selection": {"fields": true, "resources": true, "resource_field": "folder"}, "views": [{"id": "v", "label": "V", "fields": ["id"]}],
   "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "folder": {},
    "sent_at": {"type": ["string", "null"], "format": "date-time"}}}},
  {"name": "reactions", "semantics": "mutable_state", "primary_key": "id", "coverage_strategy": "checkpoint_window", "availability": {"state": "experimental"},
   "state_stream": "messages", "schema": {"type": "object", "properties": {"id": {}}}},
  {"name": "attachments", "semantics": "append_only", "primary_key": ["id"], "coverage_strategy": "parent_detail_accounting",
   "parent_streams": ["messages"], "schema": {"type": "object", "properties": {"id": {}}}}],
 "sluice": {"node_id": "fetch", "budgets": {"total_ms": 1000},
  "settings": {"type": "object", "required": ["account"], "properties": {"account": {"type": "string", "title": "Account", "env": ["ACCOUNT"]}}},
  "secrets": [{"name": "api_token", "label": "API token", "required": true, "delivery": "sealed", "destinations":
    [{"origin": "https://api.mail.example", "path_prefix": "/v2/", "placements": ["header:authorization"]}]}],
  "interaction_fields": {"otp.code": {"delivery": "plain"}}}}`

func TestManifest(t *testing.T) {
	m, err := abi.ReadManifest([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != "mailbox" || m.Node() != "fetch" || m.Version != "1.4.0" || m.DisplayName != "Example Mailbox" {
		t.Errorf("identity of %+v", m)
	}
	if string(m.Raw) != example {
		t.Error("the raw manifest was changed")
	}
	if b := m.Bindings["network"]; !b.Required || !cmp.Equal(b.Hosts, []string{"api.mail.example:443"}) {
		t.Errorf("network %+v", b)
	}
	want := []abi.MountRequest{{Name: "data", Writable: true, Purpose: "reading"}, {Name: "more"}}
	if diff := cmp.Diff(want, m.Bindings["filesystem"].Mounts); diff != "" {
		t.Error(diff)
	}
	s := m.Stream("messages")
	if s.ResourceField != "folder" || s.ConsentTimeField != "sent_at" || !s.Incremental ||
		!cmp.Equal(s.PrimaryKey, []string{"id"}) {
		t.Errorf("messages %+v", s)
	}
	if p := m.Stream("reactions").PrimaryKey; !cmp.Equal(p, []string{"id"}) {
		t.Errorf("a key given as one text: %q", p)
	}
	if got := m.Children("messages"); !cmp.Equal(got, []string{"reactions", "attachments"}) {
		t.Errorf("children %q", got)
	}
	if m.DependsOn("messages") || !m.DependsOn("reactions") || !m.DependsOn("attachments") || m.Declares("nothing") {
		t.Error("dependencies")
	}
	if d := m.Sluice.InteractionFields["otp.code"]; d.Delivery != "plain" {
		t.Errorf("otp.code %+v", d)
	}
	if d := m.Sluice.Secrets[0].Destinations; len(d) != 1 || d[0].PathPrefix != "/v2/" {
		t.Errorf("destinations %+v", d)
	}
	if len(m.CaptureFields) != 2 || m.CaptureFields[0].Secret || !m.CaptureFields[1].Secret {
		t.Errorf("capture fields %+v", m.CaptureFields)
	}
}

// manifestWith replaces one member of a small manifest.
func manifestWith(t *testing.T, member, value string) []byte {
	t.Helper()
	m := map[string]json.RawMessage{
		"protocol_version": []byte(`"0.1.0"`), "connector_id": []byte(`"c"`), "version": []byte(`"1"`),
		"display_name": []byte(`"C"`), "streams": []byte(`[` + spec("a", "") + `]`),
	}
	if value == "" {
		delete(m, member)
	} else {
		m[member] = json.RawMessage(value)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("%s = %s: %v", member, value, err)
	}
	return raw
}

// spec is a stream with further members.
func spec(name, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(
		`{"name":%q,"semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{},"t":{"type":"string","format":"date"}}}%s}`, name, more)
}

// Each refusal names the rule and the member.
func TestManifestRefused(t *testing.T) {
	stream := func(more string) string { return "[" + spec("a", more) + "]" }
	raw := func(members string) string { return "[{" + members + "}]" }
	for _, c := range []struct{ member, value, rule, path string }{
		{"protocol_version", "", "value_unknown", "/protocol_version"},
		{"protocol_version", `"0.1.1"`, "value_unknown", "/protocol_version"},
		{"connector_id", "", "text_expected", "/connector_id"},
		{"connector_id", `"https://x.example/"`, "", ""},
		{"connector_id", `"/"`, "connector_id_invalid", "/connector_id"},
		{"connector_id", `"_x"`, "connector_id_invalid", "/connector_id"},
		{"connector_key", `"C"`, "connector_key_invalid", "/connector_key"},
		{"connector_key", `"d"`, "connector_key_mismatch", "/connector_key"},
		{"connector_key", `"c"`, "", ""},
		{"version", `""`, "text_expected", "/version"},
		{"version", `1`, "text_expected", "/version"},
		{"display_name", "", "text_expected", "/display_name"},
		{"display_name", `"a\u0007b"`, "text_control", "/display_name"},

		{"runtime_requirements", `[]`, "object_expected", "/runtime_requirements"},
		{"runtime_requirements", `{"bindings":[]}`, "object_expected", "/runtime_requirements/bindings"},
		{"runtime_requirements", `{"bindings":{"network":null}}`, "object_expected",
			"/runtime_requirements/bindings/network"},
		{"runtime_requirements", `{"bindings":{"network":{"required":"yes"}}}`, "flag_expected",
			"/runtime_requirements/bindings/network/required"},
		{"runtime_requirements", `{"bindings":{"network":{"hosts":["a",7]}}}`, "text_expected",
			"/runtime_requirements/bindings/network/hosts/1"},
		{"runtime_requirements", `{"bindings":{"filesystem":{"mounts":[{"name":"tmp"}]}}}`, "mount_name_invalid",
			"/runtime_requirements/bindings/filesystem/mounts/0/name"},
		{"runtime_requirements", `{"bindings":{"filesystem":{"mounts":[{"name":"a"},{"name":"a"}]}}}`, "mount_duplicate",
			"/runtime_requirements/bindings/filesystem/mounts/1/name"},
		{"runtime_requirements", `{"bindings":{"filesystem":{"mounts":[{"name":"a","mode":"wr"}]}}}`, "value_unknown",
			"/runtime_requirements/bindings/filesystem/mounts/0/mode"},
		{"runtime_requirements", `{"bindings":{"a/b~c":7}}`, "object_expected", "/runtime_requirements/bindings/a~1b~0c"},

		{"capabilities", `{"human_interaction":["telepathy"]}`, "value_unknown", "/capabilities/human_interaction/0"},
		{"capabilities", `{"refresh_policy":"often"}`, "object_expected", "/capabilities/refresh_policy"},
		{"setup", `{"credential_capture":{"fields":[{}]}}`, "text_expected", "/setup/credential_capture/fields/0/name"},
		{"reason_display_messages", `{"x":7}`, "text_expected", "/reason_display_messages/x"},

		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","body"]}]}`, "", ""},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","header":"X-Session","placements":["header:Authorization","body"]}]}`, "", ""},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"owner","path_prefix":"/login","cookie":"sid","placements":["header:Authorization","body"]}]}`, "", ""},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","body"]},{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","body"]}]}`, "session_token_name_invalid", "/sluice/session_tokens/1/name"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"pw","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","body"]}]}`, "session_token_name_invalid", "/sluice/session_tokens/0/name"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"otp.s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","body"]}]}`, "session_token_name_invalid", "/sluice/session_tokens/0/name"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","body"]}]}`, "session_token_origin_invalid", "/sluice/session_tokens/0/origin"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"login","pointer":"/t","placements":["header:Authorization","body"]}]}`, "session_token_path_invalid", "/sluice/session_tokens/0/path_prefix"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"t","placements":["header:Authorization","body"]}]}`, "session_token_place_invalid", "/sluice/session_tokens/0/pointer"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","cookie":"sid","placements":["header:Authorization","body"]}]}`, "session_token_place_invalid", "/sluice/session_tokens/0"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","placements":["header:Authorization","body"]}]}`, "session_token_place_invalid", "/sluice/session_tokens/0"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","header":"Set-Cookie","placements":["header:Authorization","body"]}]}`, "session_token_place_invalid", "/sluice/session_tokens/0/header"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","header":"a b","placements":["header:Authorization","body"]}]}`, "session_token_place_invalid", "/sluice/session_tokens/0/header"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","cookie":"a=b","placements":["header:Authorization","body"]}]}`, "session_token_place_invalid", "/sluice/session_tokens/0/cookie"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":[]}]}`, "session_token_placement_invalid", "/sluice/session_tokens/0/placements"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","query"]}]}`, "session_token_placement_invalid", "/sluice/session_tokens/0/placements"},
		{"sluice", `{"secrets":[{"name":"pw"}],"session_tokens":[{"name":"s","origin":"https://a.example","path_prefix":"/login","pointer":"/t","placements":["header:Authorization","header:"]}]}`, "session_token_placement_invalid", "/sluice/session_tokens/0/placements"},

		{"streams", "", "streams_missing", "/streams"},
		{"streams", `[]`, "streams_missing", "/streams"},
		{"streams", `{}`, "streams_missing", "/streams"},
		{"streams", `["a"]`, "object_expected", "/streams/0"},
		{"streams", "[" + spec("*", "") + "]", "stream_name_invalid", "/streams/0/name"},
		{"streams", "[" + spec(" ", "") + "]", "text_expected", "/streams/0/name"},
		{"streams", "[" + spec(strings.Repeat("n", 129), "") + "]", "text_too_long", "/streams/0/name"},
		{"streams", "[" + spec("a", "") + "," + spec("a", "") + "]", "stream_duplicate", "/streams/1/name"},
		{"streams", raw(`"name":"a","semantics":"append_only","primary_key":"id"`), "object_expected", "/streams/0/schema"},
		{"streams", raw(`"name":"a","semantics":"append_only","primary_key":"id","schema":{"type":"array","properties":{"id":{}}}`), "value_unknown", "/streams/0/schema/type"},
		{"streams", raw(`"name":"a","semantics":"append_only","primary_key":"id","schema":{"type":"object"}`),
			"object_expected", "/streams/0/schema/properties"},
		{"streams", raw(`"name":"a","semantics":"append_only","primary_key":"x","schema":{"type":"object","properties":{"id":{}}}`), "primary_key_unknown", "/streams/0/primary_key"},
		{"streams", raw(`"name":"a","semantics":"append_only","primary_key":[],"schema":{"type":"object","properties":{"id":{}}}`), "primary_key_empty", "/streams/0/primary_key"},
		{"streams", raw(`"name":"a","semantics":"append_only","schema":{"type":"object","properties":{"id":{}}}`),
			"text_expected", "/streams/0/primary_key"},
		{"streams", raw(`"name":"a","semantics":"sometimes","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}`), "value_unknown", "/streams/0/semantics"},
		{"streams", stream(`"consent_time_field":"nothing"`), "consent_time_unknown", "/streams/0/consent_time_field"},
		{"streams", stream(`"consent_time_field":"id"`), "consent_time_type", "/streams/0/consent_time_field"},
		{"streams", stream(`"consent_time_field":"t"`), "", ""},
		{"streams", stream(`"availability":{"state":"gone"}`), "value_unknown", "/streams/0/availability/state"},
		{"streams", stream(`"coverage_strategy":"luck"`), "value_unknown", "/streams/0/coverage_strategy"},
		{"streams", stream(`"coverage_strategy":"full_inventory"`), "", ""},

		{"sluice", `[]`, "object_expected", "/sluice"},
		{"sluice", `{"node_id":"No"}`, "node_id_invalid", "/sluice/node_id"},
		{"sluice", `{"budgets":{"total_ms":0}}`, "budget_invalid", "/sluice/budgets/total_ms"},
		{"sluice", `{"budgets":{"total_ms":"1s"}}`, "budget_invalid", "/sluice/budgets/total_ms"},
		{"sluice", `{"settings":{"properties":{"a":{"type":"secret"}}}}`, "value_unknown",
			"/sluice/settings/properties/a/type"},
		{"sluice", `{"settings":{"properties":{"a":{}}}}`, "value_unknown", "/sluice/settings/properties/a/type"},
		{"sluice", `{"settings":{"properties":{"a":{"type":"json","env":["path"]}}}}`, "env_name_invalid",
			"/sluice/settings/properties/a/env"},
		{"sluice", `{"settings":{"properties":{"a":{"type":"json","env":["TZ"]}}}}`, "env_name_invalid",
			"/sluice/settings/properties/a/env"},
		{"sluice", `{"secrets":[{"name":"a b"}]}`, "secret_name_invalid", "/sluice/secrets/0/name"},
		{"sluice", `{"secrets":[{"name":"a","delivery":"loud"}]}`, "value_unknown", "/sluice/secrets/0/delivery"},
		{"sluice", `{"secrets":[{"name":"a","destinations":[{}]}]}`, "text_expected",
			"/sluice/secrets/0/destinations/0/origin"},
		{"sluice", `{"interaction_fields":{"otp.code":"sealed"}}`, "object_expected", "/sluice/interaction_fields/otp.code"},
		{"sluice", `{}`, "", ""},
	} {
		t.Run(c.member+" "+abi.Cut(c.value, 60), func(t *testing.T) {
			checkRefusal(t, manifestWith(t, c.member, c.value), c.rule, c.path)
		})
	}
}

// What a manifest asks of the browser is checked as everything in it.
func TestBrowserBindingRefused(t *testing.T) {
	for _, c := range []struct{ value, rule, path string }{
		{`{"profile":""}`, "profile_name_invalid", "/profile"},
		{`{"profile":7}`, "profile_name_invalid", "/profile"},
		{`{"profile":"a.b"}`, "profile_name_invalid", "/profile"},
		{`{"profile":"../x"}`, "profile_name_invalid", "/profile"},
		{`{"uploads":"yes"}`, "flag_expected", "/uploads"},
		{`{"downloads":1}`, "flag_expected", "/downloads"},
		{`{"popups":"window"}`, "value_unknown", "/popups"},
		{`{"cookie_handoff":"a.example"}`, "array_expected", "/cookie_handoff"},
		{`{"cookie_handoff":["a.example","*.example"]}`, "handoff_host", "/cookie_handoff/1"},
		{`{"cookie_handoff":["https://a.example"]}`, "handoff_host", "/cookie_handoff/0"},
		{`{"cookie_handoff":["a.example:443"]}`, "handoff_host", "/cookie_handoff/0"},
		{`{"cookie_handoff":["A.example"]}`, "handoff_host", "/cookie_handoff/0"},
		{`{"max_actions_per_minute":0}`, "rate", "/max_actions_per_minute"},
		{`{"max_actions_per_minute":1.5}`, "rate", "/max_actions_per_minute"},
		{`{"actions":[7]}`, "object_expected", "/actions/0"},
		{`{"actions":[{"name":"a b","verb":"click","action_type":"side_effect"}]}`, "action_name_invalid", "/actions/0/name"},
		{`{"actions":[{"name":"a","verb":"wait","action_type":"side_effect"}]}`, "value_unknown", "/actions/0/verb"},
		{`{"actions":[{"name":"a","verb":"click"}]}`, "value_unknown", "/actions/0/action_type"},
		{`{"actions":[{"name":"a","verb":"click","action_type":"none"}]}`, "value_unknown", "/actions/0/action_type"},
		{`{"actions":[{"name":"a","verb":"click","action_type":"side_effect","idempotent":"no"}]}`, "flag_expected",
			"/actions/0/idempotent"},
		{`{"actions":[{"name":"a","verb":"click","action_type":"side_effect","category":"Magic"}]}`, "value_unknown",
			"/actions/0/category"},
		{`{"actions":[{"name":"a","verb":"click","action_type":"side_effect"},{"name":"a","verb":"type","action_type":"local_state"}]}`, "action_duplicate", "/actions/1/name"},
		{`{"hosts":7}`, "", ""},
	} {
		t.Run(abi.Cut(c.value, 60), func(t *testing.T) {
			path := c.path
			if path != "" {
				path = "/runtime_requirements/bindings/browser" + path
			}
			checkRefusal(t, manifestWith(t, "runtime_requirements", `{"bindings":{"browser":`+c.value+`}}`), c.rule, path)
		})
	}
}

// What is asked for is what is read, and nothing asks for nothing.
func TestBrowserBinding(t *testing.T) {
	m, err := abi.ReadManifest(manifestWith(t, "runtime_requirements", `{"bindings":{"browser":{"required":true,"profile":"Work-1","uploads":true,
		"downloads":true,"popups":"deny","cookie_handoff":["api.shop.example"],"max_actions_per_minute":30,"hosts":["unknown.example"],
		"actions":[{"name":"cart.add","verb":"click","action_type":"local_state","idempotent":false,"category":"Selection"},{"name":"save","verb":"press","action_type":"side_effect"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	once := false
	want := abi.Binding{Required: true, Browser: &abi.BrowserRequest{
		Profile: "Work-1", Uploads: true, Downloads: true, Popups: abi.PopupDeny,
		CookieHandoff: []string{"api.shop.example"}, MaxActions: 30, Actions: []abi.DeclaredAction{
			{Name: "cart.add", Verb: "click", ActionType: "local_state", Idempotent: &once, Category: "Selection"},
			{Name: "save", Verb: "press", ActionType: "side_effect"},
		},
	}}
	if diff := cmp.Diff(want, m.Bindings[abi.BindingBrowser]); diff != "" {
		t.Error(diff)
	}
	if m, err = abi.ReadManifest(manifestWith(t, "runtime_requirements", `{"bindings":{"browser":{}}}`)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(abi.Binding{Browser: &abi.BrowserRequest{}}, m.Bindings[abi.BindingBrowser]); diff != "" {
		t.Error(diff)
	}
	for name, ok := range map[string]bool{"a": true, "A_b-9": true, "": false, "a.b": false, "a/b": false,
		"a ": false, "é": false,
		strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if abi.IsProfileName(name) != ok {
			t.Errorf("profile %q: %v", name, !ok)
		}
	}
}

func checkRefusal(t *testing.T, manifest []byte, rule, path string) {
	t.Helper()
	_, err := abi.ReadManifest(manifest)
	if rule == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	var bad *abi.ManifestError
	if !errors.As(err, &bad) {
		t.Fatalf("error %v, want %s", err, rule)
	}
	if bad.Rule != rule || bad.Path != path {
		t.Errorf("%s at %s, want %s at %s", bad.Rule, bad.Path, rule, path)
	}
}

func TestManifestText(t *testing.T) {
	for _, c := range []struct{ name, src, rule string }{
		{"empty", "", "manifest_json"},
		{"array", "[]", "manifest_json"},
		{"repeated member", `{"version":"1","version":"2"}`, "manifest_json"},
		{"too large", `{"x":"` + strings.Repeat("x", abi.MaxManifestBytes) + `"}`, "manifest_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) { checkRefusal(t, []byte(c.src), c.rule, "") })
	}
}

// The rules of streams, each over all streams before the next one.
func TestDependencies(t *testing.T) {
	state := func(name, parent string) string {
		return spec(name, fmt.Sprintf(`"state_stream":%s,"coverage_strategy":"checkpoint_window"`, parent))
	}
	detail := func(name, parents string) string {
		return spec(name, fmt.Sprintf(`"parent_streams":%s,"coverage_strategy":"parent_detail_accounting"`, parents))
	}
	plain := func(name string) string { return spec(name, "") }
	for _, c := range []struct {
		name, rule, path string
		streams          []string
	}{
		{"state_stream is a number", "dependency_malformed", "/streams/1/state_stream",
			[]string{plain("a"), state("b", `7`)}},
		{"state_stream is blank", "dependency_malformed", "/streams/1/state_stream", []string{plain("a"), state("b", `" "`)}},
		{"parent_streams is a text", "dependency_malformed", "/streams/1/parent_streams",
			[]string{plain("a"), detail("b", `"a"`)}},
		{"parent_streams has a number", "dependency_malformed", "/streams/1/parent_streams",
			[]string{plain("a"), detail("b", `["a",7]`)}},
		{"parent_streams has a blank", "dependency_malformed", "/streams/1/parent_streams",
			[]string{plain("a"), detail("b", `["a",""]`)}},
		{"both", "dependency_both_declared", "/streams/1/parent_streams",
			[]string{plain("a"), spec("b",
				`"state_stream":"a","parent_streams":["a"],"coverage_strategy":"checkpoint_window"`)}},
		{"both, one empty", "dependency_both_declared", "/streams/1/parent_streams",
			[]string{plain("a"), spec("b", `"state_stream":"a","parent_streams":[],"coverage_strategy":"checkpoint_window"`)}},
		{"no parents", "dependency_empty_parents", "/streams/1/parent_streams", []string{plain("a"), detail("b", `[]`)}},
		{"itself by state", "dependency_self_reference", "/streams/0/state_stream", []string{state("a", `"a"`)}},
		{"itself among parents", "dependency_self_reference", "/streams/1/parent_streams",
			[]string{plain("a"), detail("b", `["a","b"]`)}},
		{"unknown by state", "dependency_unknown_stream", "/streams/0/state_stream", []string{state("a", `"z"`)}},
		{"unknown among parents", "dependency_unknown_stream", "/streams/1/parent_streams",
			[]string{plain("a"), detail("b", `["a","z"]`)}},
		{"a parent twice", "dependency_duplicate_parent", "/streams/2/parent_streams",
			[]string{plain("a"), plain("b"), detail("c", `["a","b","a"]`)}},
		{"two in a circle", "dependency_cycle", "/streams/0/state_stream", []string{state("a", `"b"`), state("b", `"a"`)}},
		{"three, by both kinds", "dependency_cycle", "/streams/0/state_stream",
			[]string{state("a", `"b"`), detail("b", `["d","c"]`), state("c", `"a"`), plain("d")}},
		{"a circle beside a line", "dependency_cycle", "/streams/2/parent_streams",
			[]string{plain("a"), state("b", `"a"`), detail("c", `["a","d"]`), detail("d", `["c"]`)}},
		{"two levels", "dependency_too_deep", "/streams/2/parent_streams",
			[]string{plain("a"), state("b", `"a"`), detail("c", `["b"]`)}},
		{"two levels, one of two parents", "dependency_too_deep", "/streams/2/parent_streams",
			[]string{plain("a"), state("b", `"a"`), detail("c", `["a","b"]`)}},
		{"strategy of a state stream", "dependency_strategy_mismatch", "/streams/1/state_stream",
			[]string{plain("a"), spec("b", `"state_stream":"a"`)}},
		{"strategy of parents", "dependency_strategy_mismatch", "/streams/1/parent_streams",
			[]string{plain("a"), spec("b", `"parent_streams":["a"],"coverage_strategy":"checkpoint_window"`)}},
		{"self-reference comes before a malformed cycle", "dependency_self_reference", "/streams/2/state_stream",
			[]string{state("a", `"b"`), state("b", `"a"`), state("c", `"c"`)}},
		{"a cycle comes before depth", "dependency_cycle", "/streams/3/state_stream",
			[]string{plain("a"), state("b", `"a"`), state("c", `"b"`), state("d", `"e"`), state("e", `"d"`)}},
		{"a shared parent is no cycle", "", "", []string{plain("a"), state("b", `"a"`), detail("c", `["a"]`)}},
		{"two parents, two children", "", "",
			[]string{plain("a"), plain("b"), detail("c", `["a","b"]`), detail("d", `["b","a"]`)}},
		{"null is absent", "", "", []string{spec("a", `"state_stream":null,"parent_streams":null`)}},
		{"forward reference", "", "", []string{state("a", `"b"`), plain("b")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkRefusal(t, manifestWith(t, "streams", "["+strings.Join(c.streams, ",")+"]"), c.rule, c.path)
		})
	}
}

// The connector name.
func TestSlug(t *testing.T) {
	for id, want := range map[string]string{
		"mailbox": "mailbox", "https://connectors.example/Mail Box": "mail-box", "https://x.example/a/b_C/": "b_c",
		"https://x.example/ü": "-", "a.b": "a-b",
	} {
		if got := abi.SlugOf(id); got != want {
			t.Errorf("SlugOf(%q) = %q, want %q", id, got, want)
		}
	}
	for s, want := range map[string]bool{"a": true, "0-_": true, "": false, "-a": false, "_a": false,
		"A": false, "a b": false,
		strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if abi.IsSlug(s) != want {
			t.Errorf("IsSlug(%q) is not %v", s, want)
		}
	}
}

// What settings accept.
func TestSettings(t *testing.T) {
	m, err := abi.ReadManifest(manifestWith(t, "sluice", `{"settings":{"type":"object","required":["s","j","d"],"properties":{
		"s":{"type":"string","enum":["a","b"]},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},
		"a":{"type":"array"},"o":{"type":"object"},"j":{"type":"json"},
		"r":{"type":"number","minimum":0,"maximum":30000,"default":1000},"d":{"type":"integer","minimum":-1,"default":1}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ config, bad string }{
		{`{"s":"a","j":null}`, ""},
		{`{"s":"a","j":[1],"i":1e2,"n":-1.5,"b":false,"a":[],"o":{},"other":{"x":1}}`, ""},
		{`{"s":"a","j":1,"i":null}`, ""},
		{`{"j":1}`, "s"},
		{`{"s":null,"j":1}`, "s"},
		{`{"s":"a"}`, "j"},
		{`{"s":7,"j":1}`, "s"},
		{`{"s":"c","j":1}`, "s"},
		{`{"s":"a","j":1,"i":1.5}`, "i"},
		{`{"s":"a","j":1,"n":"1"}`, "n"},
		{`{"s":"a","j":1,"b":"true"}`, "b"},
		{`{"s":"a","j":1,"a":{}}`, "a"},
		{`{"s":"a","j":1,"o":[]}`, "o"},
		{`{"s":"a","j":1,"r":0,"d":-1}`, ""},
		{`{"s":"a","j":1,"r":30000.0}`, ""},
		{`{"s":"a","j":1,"r":-0.1}`, "r"},
		{`{"s":"a","j":1,"r":30000.5}`, "r"},
		{`{"s":"a","j":1,"r":"1"}`, "r"},
		{`{"s":"a","j":1,"d":-2}`, "d"},
	} {
		v, err := strictjson.Parse([]byte(c.config), strictjson.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = m.Sluice.Settings.Check(v)
		var bad *abi.SettingError
		if errors.As(err, &bad) != (c.bad != "") || bad != nil && bad.Name != c.bad {
			t.Errorf("%s: %v, want fault in %q", c.config, err, c.bad)
		}
	}
	for _, property := range []string{
		`{"type":"number","minimum":"1"}`, `{"type":"string","minimum":1}`, `{"type":"number","minimum":2,"maximum":1}`,
		`{"type":"number","maximum":1,"default":2}`, `{"type":"string","default":2}`,
		`{"type":"string","enum":["a"],"default":"b"}`,
	} {
		_, err := abi.ReadManifest(manifestWith(t, "sluice",
			`{"settings":{"type":"object","properties":{"x":`+property+`}}}`))
		if bad, ok := errors.AsType[*abi.ManifestError](err); !ok ||
			!strings.HasPrefix(bad.Path, "/sluice/settings/properties/x/") {
			t.Errorf("%s: %v", property, err)
		}
	}
	var none *abi.Settings
	if err := none.Check(strictjson.Value{}); err != nil {
		t.Errorf("without settings anything goes: %v", err)
	}
}
