package assistant_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Streams may have any names: each has a table, its own count, and a schema at the address that data and the list of
// resources give.
func TestNames(t *testing.T) {
	w := newWorld(t)
	names := []string{"T", "t", "sqlite_x", "_sluice_meta", "a/b", "../up", "with space", `quo"te'`, "é", "100%", "?a=b#c"}
	var specs, scopes []any
	for _, n := range names {
		specs = append(specs, object{"name": n, "semantics": "mutable_state", "primary_key": []string{"id"},
			"schema": object{"type": "object", "properties": object{"id": object{"type": "string"}}}})
		scopes = append(scopes, object{"name": n})
	}
	m, err := json.Marshal(object{"protocol_version": "0.1.0", "connector_id": "https://example.org/odd", "version": "1",
		"display_name": "Odd", "streams": specs})
	w.must(err)
	scope, err := json.Marshal(object{"streams": scopes})
	w.must(err)
	w.must(w.store.PutConnection(t.Context(),
		store.Connection{ID: "main", CreatedAt: time.Unix(1_700_000_000, 0), Manifest: m}))
	for i, n := range names {
		for k := range i + 1 {
			id := string(rune('a' + k))
			w.collect("main", store.Stream(n), id+` {"id":"`+id+`"}`)
		}
	}
	w.add("notes", func(q *host.NewAssistant) {
		q.Connections = []host.AssistantGrant{{ConnectionID: "main", Scope: scope}}
	})
	s := w.connect("notes")
	var data struct {
		Connections []struct {
			Streams []struct {
				Stream, Table, Schema string
				Records               int
			}
		}
	}
	w.structured(s, "data", object{}, &data)
	if len(data.Connections) != 1 || len(data.Connections[0].Streams) != len(names) {
		t.Fatalf("%+v", data)
	}
	listed, err := s.ListResources(t.Context(), nil)
	w.must(err)
	for i, st := range data.Connections[0].Streams {
		if st.Stream != names[i] || st.Records != i+1 || listed.Resources[i].URI != st.Schema {
			t.Errorf("%+v, want %d records, and %s", st, i+1, listed.Resources[i].URI)
		}
		if r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: st.Schema}); err != nil ||
			!strings.Contains(r.Contents[0].Text, `"id"`) {
			t.Errorf("%s: %v", st.Schema, err)
		}
		var found struct{ Rows [][]int }
		w.structured(s, "query", object{"sql": "SELECT count(*) FROM " + st.Table}, &found)
		if len(found.Rows) != 1 || found.Rows[0][0] != i+1 {
			t.Errorf("%s: %v", st.Table, found)
		}
	}
}

// What is wrong with arguments is said by their names.
func TestArguments(t *testing.T) {
	w := newWorld(t)
	w.add("notes")
	s := w.connect("notes")
	for _, c := range []struct {
		tool, arguments, want string
	}{
		{"get_record", `{}`, "connection is missing: get_record wants connection, stream, key."},
		{"get_record", `{"connection":"mail","stream":"messages"}`, "key is missing"},
		{"get_record", `{"connection":"mail","stream":"messages","key":null}`, "key is missing"},
		{"get_record", `{"connection":"mail","stream":["x"],"key":"a"}`, "stream: want a string, not array."},
		{"list_records", `{"connection":"mail","stream":"messages","limit":1.5}`,
			"limit: want a whole number, not number 1.5."},
		{"query", `{"sql":7}`, "sql: want a string, not number."},
		{"query", `{}`, "sql is missing: query wants sql."},
		{"search", `{"words":"a","what":1}`, "The arguments are not as search wants them: unknown field \\\"what\\\"."},
		{"search", `["a"]`, "one JSON object"},
	} {
		text, ok := w.call(s, c.tool, json.RawMessage(c.arguments))
		if ok || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %s", c.tool, c.arguments, text)
		}
	}
}
