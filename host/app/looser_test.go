package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A version whose manifest loosens the bounds of a grant asks for more; without such bounds,
// or within them, it does not.
func TestLooser(t *testing.T) {
	const v1 = `{"protocol_version": "0.1.0", "connector_id": "x", "version": "1", "display_name": "X", "streams": [
		{"name": "other", "semantics": "append_only", "primary_key": ["id"], "schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}},
		{"name": "mail", "semantics": "append_only", "primary_key": ["id"], "consent_time_field": "sent", "selection": {"resources": true, "resource_field": "folder"},
		"schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "folder": {"type": "string"}, "kind": {"type": "string"},
			"body": {"type": "string"}, "sent": {"type": "string", "format": "date-time"}, "seen": {"type": "string", "format": "date-time"}}}}]}`
	const fields, since, folder = `{"streams":[{"name":"mail","fields":["kind"]}]}`,
		`{"streams":[{"name":"mail","time_range":{"since":"2026-01-01T00:00:00Z"}}]}`,
		`{"streams":[{"name":"mail","resources":["inbox"]}]}`
	for _, c := range []struct{ name, scope, old, new, want string }{
		{"required", fields, `"required": ["id"], "properties": {"id": {"type": "string"}, "folder"`,
			`"required": ["id", "body"], "properties": {"id": {"type": "string"}, "folder"`, "collect mail with its field body"},
		{"key", fields, `["id"], "consent`, `["id", "body"], "consent`, "collect mail with its field body"},
		{"required, granted", `{"streams":[{"name":"mail","fields":["body"]}]}`,
			`"required": ["id"], "properties": {"id": {"type": "string"}, "folder"`,
			`"required": ["id", "body"], "properties": {"id": {"type": "string"}, "folder"`, ""},
		{"required, no bound", "", `"required": ["id"], "properties": {"id": {"type": "string"}, "folder"`,
			`"required": ["id", "body"], "properties": {"id": {"type": "string"}, "folder"`, ""},
		{"no time", since, `"consent_time_field": "sent", `, ``, "collect mail by another time than sent"},
		{"another time", since, `"consent_time_field": "sent"`, `"consent_time_field": "seen"`,
			"collect mail by another time than sent"},
		{"another time, no bound", fields, `"consent_time_field": "sent"`, `"consent_time_field": "seen"`, ""},
		{"another resource", folder, `"resource_field": "folder"`, `"resource_field": "kind"`,
			"collect mail by other resources than folder"},
		{"less", fields, `"body": {"type": "string"}, `, ``, ""},
	} {
		text := strings.Replace(v1, c.old, c.new, 1)
		if text == v1 {
			t.Fatalf("%s: nothing replaced", c.name)
		}
		m, err := abi.ReadManifest([]byte(text))
		if err != nil {
			t.Fatal(c.name, err)
		}
		conn := store.Connection{Manifest: []byte(v1), Grant: &store.Grant{Scope: []byte(c.scope)}}
		var got []string
		for _, w := range added(conn, m) {
			got = append(got, w.String())
		}
		if want := []string{c.want}; c.want != "" && !slices.Equal(got, want) || c.want == "" && got != nil {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
}
