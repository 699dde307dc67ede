package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// payloads try every context: text, attributes with and without quotes, URLs,
// comments, raw text elements, templates, the page library, and encodings.
var payloads = []string{
	`<script>zqx()</script>`, `<zqx>`, `"><zqx zqx="`, `' zqx='1`, `" zqx="1`, `" onmouseover="zqx()`, "` zqx=`1",
	` zqx=1 `, `javascript:zqx()//`, `JaVaScRiPt:zqx()`, `data:text/html,<zqx>`, `//zqx.example/`, `https://zqx.example/`,
	`</title><zqx>`, `</textarea><zqx>`, `</option></select><zqx>`, `--><zqx>`, `]]><zqx>`, `</script><zqx>`,
	`</style><zqx>`, `<img src=x onerror=zqx()>`, `<svg/onload=zqx()>`, `<math><mi//xlink:href="data:x,<zqx>">`,
	`<iframe srcdoc="<zqx>">`, `<a href="javascript:zqx()">`, `<form action="//zqx">`, `<base href="//zqx/">`,
	`<meta http-equiv=refresh content="0;//zqx">`, `" hx-get="/ui/settings" hx-trigger="load`,
	`<div hx-get="/v1/system" hx-trigger="load">`, `<b hx-on:click="zqx()">`, `" sse-swap="badge`, `<hx-swap><zqx>`,
	`{{.CSRF}}`, `{{template "main"}}`, `&lt;zqx&gt;`, `&#60;zqx&#62;`, `&quot; zqx=&quot;`, `%3Czqx%3E`,
	`\u003czqx\u003e`, "<zqx\x00>", "\u202e<zqx>", "a\r\ndata: <zqx>\n\nevent: badge", "\u2028<zqx>", `+ADw-zqx+AD4-`,
	`<zqx`, `<!--`, `<![CDATA[`, `'"><zqx>`, `\"><zqx>`, `/ui/../<zqx>`, `?x=<zqx>&y="`, `#"><zqx>`, `<template><zqx>`,
	`<noscript><zqx>`, `<plaintext>`, `<xmp>`, `<select><zqx>`, `<table><zqx>`, `<style>@import'//zqx'</style>`,
	`<link rel=stylesheet href=//zqx>`, `<object data=//zqx>`, `<input autofocus onfocus=zqx()>`,
	`<details open ontoggle=zqx()>`, `<body onload=zqx()>`, `zqx" style="position:fixed`, `[REDACTED]<zqx>`,
	strings.Repeat(`"><zqx>`, 40),
}

// fill sets everything below v to a payload.
func fill(v reflect.Value, payload string, depth int) {
	if raw, ok := v.Addr().Interface().(*json.RawMessage); ok {
		*raw = data(map[string]any{payload: []any{payload, map[string]string{payload: payload}},
			"streams": []any{map[string]any{"name": payload, "fields": []string{payload}}}})
		return
	}
	if at, ok := v.Addr().Interface().(*time.Time); ok {
		*at = time.Now()
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(payload)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint64:
		v.SetUint(3)
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), payload, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), payload, depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, payload, depth+1)
		v.SetMapIndex(reflect.ValueOf(payload).Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), payload, depth+1)
			}
		}
	}
}

func (f *fake) poison(payload string) {
	f.connections, f.connectors, f.entries = make([]host.Connection, 1), make([]host.Connector, 1),
		make([]host.AuditEntry, 1)
	f.assistants.all, f.assistants.calls = make([]host.Assistant, 1), make([]host.AssistantCall, 1)
	f.tables, f.destinations = make([]host.Table, 1), make([]host.Destination, 1)
	for _, v := range []any{&f.connections[0], &f.connectors[0], &f.requested, &f.inspection, &f.entries[0], &f.info,
		&f.tables[0], &f.destinations[0], &f.assistants.all[0], &f.assistants.calls[0], &f.folder, &f.file} {
		fill(reflect.ValueOf(v).Elem(), payload, 0)
	}
	binding := f.requested.Bindings[payload]
	for _, name := range []string{"network", "filesystem", "interactive"} {
		f.requested.Bindings[name] = binding
	}
	f.connectors[0].Manifest = data(map[string]any{"sluice": map[string]any{"settings": map[string]any{"properties": map[string]any{
		payload: map[string]any{"type": "string", "title": payload, "description": payload, "default": payload,
			"enum": []string{payload}}}}}})
	f.result = host.QueryResult{Columns: []host.QueryColumn{{Name: payload, Type: payload}, {Name: "n"}},
		Rows: [][]json.RawMessage{{data(payload), data(3)}}}
	f.raw = &host.RawAssistance{Message: payload, Page: &host.OpenPage{Title: payload, URLHost: payload},
		Attachments: []abi.Attachment{
			{Kind: "url", Label: payload, URL: payload}, {Kind: "qr", Label: payload, Payload: payload},
			{Kind: "url", Label: payload, URL: "https://safe.example/?" + url.QueryEscape(payload)}}}
}

// told is an event of every type of the catalogue with the payload in all members.
func told(payload string) []store.Event {
	schema := map[string]any{"type": "object", "properties": map[string]any{
		payload: map[string]any{"type": "string", "title": payload, "enum": []string{payload}},
		"code":  map[string]any{"type": "string", "title": payload, "secret": true}}, "required": []string{payload}}
	var out []store.Event
	for _, entry := range timeline.Catalogue() {
		if entry.Type.Terminal() {
			continue
		}
		out = append(out, store.Event{Type: string(entry.Type), Stream: store.Stream(payload), NodeID: "collect",
			InteractionID: payload, Data: data(map[string]any{
				"message": payload, "reason": payload, "chunk": payload, "level": payload, "code": payload, "status": payload,
				"kind": payload, "stream": payload, "nodeId": "collect", "terminal_reason": payload, "field": payload,
				"origin": payload, "error": map[string]string{"code": payload, "message": payload},
				"known_gap": map[string]string{"reason": payload, "message": payload}, "collection_mode": payload,
				"isolation": map[string]any{"level": payload, "seccomp": payload, "namespaces": []string{payload}},
				payload:     payload, "artifactId": payload, "artifactType": payload, "summary": payload, "mediaType": payload,
				"size": 3, "digest": payload, "surface_id": payload, "profile": payload, "action": payload, "role": payload,
				"url_host": payload, "runtime_code": payload, "verification_result": payload, "host": payload, "port": 8443,
				"verdict": payload, "count": 3,
				"browser_surface_probe": map[string]any{"ok": false, "code": payload, "detail": payload},
				"assistance_request_id": payload, "progress_posture": "blocked", "owner_action": "provide_value",
				"response_obligation": "response_required", "sensitivity": "secret", "input_schema": schema,
			})})
	}
	for _, axes := range [][3]string{{"running", "act_elsewhere", "none"},
		{"blocked", "operate_attachment", "response_required"}, {"waiting_retry", "none", "none"},
		{"blocked", "operate_attachment", "none"}} {
		out = append(out, store.Event{Type: "run.assistance_requested",
			Data: data(map[string]any{"assistance_request_id": axes[0] + axes[2] + payload, "progress_posture": axes[0],
				"owner_action": axes[1], "response_obligation": axes[2], "message": payload,
				"attachments": []any{map[string]string{"kind": "browser_surface", "status": "unavailable", "reason": payload,
					"label": payload}}})})
	}
	return append(out, store.Event{Type: payload, Data: data(map[string]string{"message": payload})})
}

// TestHostileStrings puts payloads into every string that pages show, and parses
// what a browser gets: no element, attribute or address of a payload is in it.
func TestHostileStrings(t *testing.T) {
	s := open(t)
	for i, payload := range payloads {
		s.host.poison(payload)
		clean := strings.ToValidUTF8(strings.ReplaceAll(payload, "\x00", ""), "")
		run, connection := store.RunID(fmt.Sprintf("run_%04d", i)), store.ConnectionID(fmt.Sprintf("c-%04d", i))
		if err := s.store.PutConnection(t.Context(),
			store.Connection{ID: connection, ConnectorID: "x", DisplayName: clean, Manifest: s.host.connectors[0].Manifest,
				Settings: data(map[string]string{clean: clean})}); err != nil {
			t.Fatal(err)
		}
		lease := s.run(run, connection, told(clean)...)
		batch := &store.Batch{}
		batch.Reset("notes")
		batch.Append(store.Change{Key: []byte("k" + clean), Data: data(map[string]any{clean: clean, "name": clean}),
			EmittedAt: time.Now().UnixMicro()})
		receipt, err := s.store.Submit(t.Context(), &store.Commit{Lease: lease, Batches: []*store.Batch{batch}})
		if err == nil {
			_, err = receipt.Result()
		}
		if err != nil {
			t.Fatal(err)
		}
		s.host.connections[0].ConnectionID = string(connection)
		s.host.tables[0].Stream = "notes"
		at := "?connection=" + string(connection) + "&stream=notes"
		for _, path := range []string{"/ui/", "/ui/inbox", "/ui/runs", "/ui/runs/" + string(run),
			"/ui/runs/" + string(run) + "/older?before=9", "/ui/connections/" + string(connection),
			"/ui/connections/" + string(connection) + "/grant", "/ui/connectors/x/connect",
			"/ui/connections/" + string(connection) + "/start", "/ui/folders?at=" + url.QueryEscape(abi.Cut(clean, 40)),
			"/ui/records" + at + "&find=" + url.QueryEscape(abi.Cut(clean, 60)), "/ui/records" + at, "/ui/files" + at,
			"/ui/record" + at + "&key=" + url.QueryEscape("k"+clean), "/ui/data",
			"/ui/data/sql?sql=" + url.QueryEscape(abi.Cut(clean, 60)), "/ui/data/sql/tables",
			"/ui/data/filters" + at + "&is." + url.QueryEscape(abi.Cut(clean, 30)) + "=x",
			"/ui/data/record" + at + "&key=" + url.QueryEscape("k"+clean), "/ui/data/destinations", "/ui/assistants",
			"/ui/assistants/x", "/ui/assistants/x/calls", "/ui/connectors", "/ui/connectors/x", "/ui/schedules", "/ui/keys",
			"/ui/audit?action=" + url.QueryEscape(abi.Cut(clean, 40)), "/ui/settings"} {
			harmless(t, path, payload, s.page(path))
		}
		for _, as := range []string{"line", "bars"} {
			harmless(t, "a query", payload,
				s.post("/ui/data/sql", map[string][]string{"sql": {payload}, "x": {payload}, "y": {"n"}, "as": {as}}).body)
		}
	}
}

// elements are those that templates use.
var elements = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`html head meta title link script body a header svg path rect nav span div main section article aside h1 h2 h3 p ul ol li dl dt dd table thead tbody tr th td
		form label input select option button textarea fieldset legend details summary time bdi code pre strong figure figcaption blockquote progress br hr template canvas dialog kbd mark`) {
		elements[name] = true
	}
}

// harmless parses a page as a browser does.
func harmless(t *testing.T, path, payload, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	bad := func(what string, args ...any) {
		t.Errorf("%s with %q: %s", path, payload, fmt.Sprintf(what, args...))
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			if n.Type == html.CommentNode {
				bad("a comment")
			}
			continue
		}
		if !elements[n.Data] {
			bad("element %s", n.Data)
		}
		for _, a := range n.Attr {
			switch key := strings.ToLower(a.Key); {
			case strings.HasPrefix(key, "on"), key == "style", strings.Contains(key, "zqx"), key == "srcdoc",
				strings.HasPrefix(key, "hx-on"), strings.HasPrefix(key, "hx-vals"):
				bad("attribute %s of %s", a.Key, n.Data)
			case key == "src", key == "action", strings.HasPrefix(key, "hx-get"), strings.HasPrefix(key, "hx-post"),
				strings.HasPrefix(key, "sse-connect"):
				if !strings.HasPrefix(a.Val, "/ui/") {
					bad("%s is %q", a.Key, a.Val)
				}
			case key == "href":
				elsewhere := strings.HasPrefix(a.Val, "https://") && rel(n) == "noopener noreferrer"
				if !strings.HasPrefix(a.Val, "/ui/") && !strings.HasPrefix(a.Val, "/v1/") && a.Val != "#main" && !elsewhere {
					bad("%s is %q", a.Key, a.Val)
				}
			case key == "sse-swap", key == "hx-trigger", key == "hx-target":
				if strings.Contains(a.Val, payload) && len(payload) > 8 {
					bad("%s is %q", a.Key, a.Val)
				}
			}
		}
	}
}

func rel(n *html.Node) string {
	for _, a := range n.Attr {
		if a.Key == "rel" {
			return a.Val
		}
	}
	return ""
}
