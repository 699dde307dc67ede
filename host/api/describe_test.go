package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sluicehost/sluice/host/timeline"
)

// What is served is what is described.
func TestRoutesAreDescribed(t *testing.T) {
	c := served(t)
	var have, want []string
	for _, list := range shared.d.Server.App().Fiber().Stack() {
		for _, r := range list {
			path := strings.ReplaceAll(r.Path, `\:`, "\x00")
			var parts []string
			for p := range strings.SplitSeq(path, "/") {
				if name, ok := strings.CutPrefix(p, ":"); ok {
					name, verb, has := strings.Cut(name, "\x00")
					p = "{" + name + "}"
					if has {
						p += ":" + verb
					}
				}
				parts = append(parts, strings.ReplaceAll(p, "\x00", ":"))
			}
			path = strings.Join(parts, "/")
			if r.Method != http.MethodHead && !strings.HasPrefix(path+"/", "/ui/") && path != "/" {
				have = append(have, r.Method+" "+path)
			}
		}
	}
	paths, _ := c.do("GET", "/v1/openapi.json", nil).want(200).member("paths").(map[string]any)
	for path, item := range paths {
		for method := range item.(map[string]any) {
			want = append(want, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	have = slices.Compact(have)
	for _, r := range have {
		if !slices.Contains(want, r) {
			t.Errorf("not described: %s", r)
		}
	}
	for _, r := range want {
		if !slices.Contains(have, r) {
			t.Errorf("not served: %s", r)
		}
	}
}

// The document is OpenAPI 3.1 as far as a program can tell without its
// schema: every reference resolves, every operation has an id of its own, every
// schema compiles, every path parameter is declared.
func TestOpenAPI(t *testing.T) {
	c := served(t)
	a := c.do("GET", "/v1/openapi.json", nil).want(200)
	if !strings.HasPrefix(a.text("openapi"), "3.1.") || a.text("info", "title") == "" || a.text("info", "version") == "" {
		t.Errorf("%v", a.member("info"))
	}
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for path, item := range d.doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			id, _ := member(op, "operationId").(string)
			if id == "" || ids[id] || member(op, "summary") == "" {
				t.Errorf("%s %s: operation id %q", method, path, id)
			}
			ids[id] = true
			parameters, _ := member(op, "parameters").([]any)
			for part := range strings.SplitSeq(path, "/") {
				if rest, ok := strings.CutPrefix(part, "{"); ok {
					name, _, _ := strings.Cut(rest, "}")
					if !slices.ContainsFunc(parameters, func(p any) bool {
						return member(p, "name") == name && member(p, "in") == "path" && member(p, "required") == true
					}) {
						t.Errorf("%s %s: parameter %s is not declared", method, path, name)
					}
				}
			}
			responses, _ := member(op, "responses").(map[string]any)
			for status, r := range responses {
				content, _ := member(r, "content").(map[string]any)
				for media := range content {
					at := "/paths/" + pointer(path) + "/" + method + "/responses/" + status + "/content/" + pointer(media) + "/schema"
					if _, err := d.schema(at); err != nil {
						t.Errorf("%s: %v", at, err)
					}
				}
			}
		}
	}
	references(d.doc, func(ref string) {
		var parts []any
		for p := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			parts = append(parts, p)
		}
		if member(any(d.doc), parts...) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	})
}

func references(v any, found func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			if ref, ok := m.(string); ok && name == "$ref" {
				found(ref)
			}
			references(m, found)
		}
	case []any:
		for _, m := range v {
			references(m, found)
		}
	}
}

// asyncAPI is the document as served.
func asyncAPI(t *testing.T, c *client) map[string]any {
	t.Helper()
	a := c.as("").do("GET", "/v1/asyncapi.yaml", nil).want(200)
	var doc map[string]any
	if err := yaml.Unmarshal(a.body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// updatesUnion are the messages that openwop's own document gives the channel.
var updatesUnion = strings.Fields(`run.started run.completed run.failed run.cancelled run.paused run.resumed
	node.completed node.failed node.skipped node.suspended approval.requested approval.received
	clarification.requested clarification.resolved interrupt.requested interrupt.resolved artifact.created`)

// The messages of each channel are those of the catalogue with the same modes.
func TestAsyncAPI(t *testing.T) {
	c := served(t)
	doc := asyncAPI(t, c)
	if v, _ := doc["asyncapi"].(string); !strings.HasPrefix(v, "3.") || doc["defaultContentType"] != "text/event-stream" {
		t.Errorf("%v %v", doc["asyncapi"], doc["defaultContentType"])
	}
	want := map[string][]string{
		"runEventsUpdates": updatesUnion, "runEventsDebug": {}, "runEventsValues": {string(timeline.StateSnapshot)},
		"runEventsMessages": {string(timeline.AIMessageChunk)},
	}
	for _, e := range timeline.Catalogue() {
		want["runEventsDebug"] = append(want["runEventsDebug"], string(e.Type))
	}
	channels, _ := doc["channels"].(map[string]any)
	if len(channels) != 4 {
		t.Errorf("%d channels", len(channels))
	}
	for name, types := range want {
		if address := member(any(doc), "channels", name, "address"); address != "/runs/{runId}/events" {
			t.Errorf("%s: %v", name, address)
		}
		messages, _ := member(any(doc), "channels", name, "messages").(map[string]any)
		var have []string
		for m := range messages {
			have = append(have, fmt.Sprint(member(any(doc), "components", "messages", m, "name")))
		}
		slices.Sort(have)
		slices.Sort(types)
		if !slices.Equal(have, types) {
			t.Errorf("%s: %v, want %v", name, have, types)
		}
		subscribe := "subscribe" + strings.TrimPrefix(name, "runEvents")
		op := member(any(doc), "operations", subscribe)
		mode := strings.ToLower(strings.TrimPrefix(name, "runEvents"))
		if member(op, "action") != "receive" || member(op, "channel", "$ref") != "#/channels/"+name ||
			fmt.Sprint(member(op, "bindings", "http", "query", "properties", "streamMode", "enum")) != "["+mode+"]" {
			t.Errorf("%s: %v", subscribe, op)
		}
	}
	references(doc, func(ref string) {
		var parts []any
		for p := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			parts = append(parts, p)
		}
		if member(any(doc), parts...) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	})
}

// Discovery needs no credential, and says what there is.
func TestDiscovery(t *testing.T) {
	c := served(t).as("")
	a := c.do("GET", "/.well-known/openwop", nil).want(200)
	if a.header.Get("Cache-Control") != "public, max-age=300" ||
		strings.Trim(a.header.Get("Capabilities-Etag"), `" `) == "" {
		t.Errorf("%v", a.header)
	}
	if again := c.do("GET", "/.well-known/openwop",
		nil); again.header.Get("Capabilities-Etag") != a.header.Get("Capabilities-Etag") {
		t.Error("the etag changed")
	}
	for _, path := range [][]any{{"supportedEnvelopes", 0}, {"schemaVersions", "clarification.request"},
		{"implementation", "version"}, {"configurable"},
		{"limits", "clarificationRounds"}, {"limits", "maxNodeExecutions"}, {"runtimeCapabilities", 0},
		{"extensions", "sluice", "limits"}} {
		if v := a.member(path...); v == nil || v == 0.0 {
			t.Errorf("%v: %v", path, v)
		}
	}
	for _, name := range []string{"agents", "nodePackRuntimes", "capabilities", "mcp"} {
		if a.member(name) != nil {
			t.Errorf("%s is claimed", name)
		}
	}
	if got := fmt.Sprint(a.member("fixtures")); got != fmt.Sprint(fixtures) {
		t.Errorf("fixtures %s", got)
	}
	if len(a.member("limits").(map[string]any)) != 4 || len(a.member("implementation").(map[string]any)) != 3 {
		t.Errorf("closed objects: %s", a.body)
	}
}

// Roots without the prefix, and what does not exist.
func TestPaths(t *testing.T) {
	c := served(t)
	for _, path := range []string{"/runs", "/connectors/x", "/connections", "/webhooks", "/runs/x:pause"} {
		a := c.do("GET", path, nil).want(400, "validation_error")
		if !strings.HasPrefix(a.text("details", "expected"), "/v1/") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	for _, path := range []string{"/nothing", "/v1/nothing", "/v1", "/v2/runs", "/v1/runs/x/y"} {
		c.do("GET", path, nil).want(404, "not_found")
	}
	c.do("POST", "/v1/runs/run_1:explode", nil).want(404, "not_found")
	c.do("GET", "/v1/runs/run_1:pause", nil).want(404, "not_found")
	c.do("POST", "/v1/runs/run_1%3Apause", nil).want(405, "method_not_allowed")
	if a := c.as("").do("GET", "/healthz", nil).want(200); a.text("status") != "ok" {
		t.Errorf("%s", a.body)
	}
}

// The variables of a conformance connector are its settings, with their
// defaults.
func TestWorkflowDefaults(t *testing.T) {
	c := served(t)
	for id, want := range map[string]float64{"conformance-delay": 1000, "conformance-cancellable": 30_000} {
		a := c.do("GET", "/v1/workflows/"+id, nil).want(200)
		if name, got := a.text("variables", 0, "name"), a.number("variables", 0, "defaultValue"); name != "delayMs" ||
			got != want {
			t.Errorf("%s: %s %v", id, name, got)
		}
	}
	a := c.do("GET", "/v1/workflows/conformance-idempotent", nil).want(200)
	if v, _ := a.member("variables", 0).(map[string]any); v == nil || v["defaultValue"] != nil {
		t.Errorf("%s", a.body)
	}
}

// The limits that clients of the API meet stand under the names of the
// specification.
func TestPublishedLimits(t *testing.T) {
	a := served(t).do("GET", "/.well-known/openwop", nil).want(200)
	total := a.number("extensions", "sluice", "limits", "budget.total")
	for name, want := range map[string]float64{"maxRequestBodyBytes": 1 << 20, "maxRunDurationSec": total / 1000,
		"subscribersPerRun": 32,
		"subscribersPerKey": 128, "subscribers": 1024, "requestsPerSecond": 100_000, "requestBurst": 100_000,
		"loginsPerMinute": 100, "tokenPostsPerMinute": 10, "connectionsPerAddress": 1000, "connections": 4096} {
		if got := a.number("extensions", "sluice", "limits", name); got != want || got == 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
