package api_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
)

// boxManifest is for the module of examples/ask: it wants a server, a directory, a
// secret and questions.
const boxManifest = `{"protocol_version":"0.1.0","connector_id":"https://example.org/box","connector_key":"box","version":"1.0.0","display_name":"Box <b>",
 "runtime_requirements":{"bindings":{"interactive":{"required":false},"network":{"required":true,"hosts":["api.example.org"]}}},
 "capabilities":{"human_interaction":["otp","approval"],"refresh_policy":{"recommended_mode":"automatic","rationale":"x","background_safe":true}},
 "streams":[{"name":"answers","semantics":"mutable_state","primary_key":["id"],"coverage_strategy":"full_inventory",
  "schema":{"type":"object","required":["id","kind","outcome"],"properties":{"id":{"type":"string"},"kind":{"type":"string"},"outcome":{"type":"string"}}}}],
 "sluice":{"secrets":[{"name":"token","destinations":[{"origin":"https://api.example.org","placements":["header:authorization"]}]}],
  "settings":{"type":"object","properties":{"ask":{"type":"array"},"pause_ms":{"type":"integer","minimum":0,"maximum":1000}}}}}`

func boxModule(t *testing.T, manifest string) []byte {
	t.Helper()
	file, err := build.Module("examples/ask")
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if wasm, err = sandbox.EmbedManifest(wasm, []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	return wasm
}

// upload is a multipart body.
func upload(parts ...string) ([]byte, option) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		p := must(w.CreateFormFile(parts[i], parts[i]))
		_ = must(p.Write([]byte(parts[i+1])))
	}
	_ = w.Close()
	return b.Bytes(), header("Content-Type", w.FormDataContentType())
}

// crateManifest is the box's under another name: other tests install that.
var crateManifest = strings.NewReplacer("/box", "/crate", `"box"`, `"crate"`).Replace(boxManifest)

// What is uploaded, looked at, refused and removed.
func TestConnectors(t *testing.T) {
	c := served(t)
	wasm := string(boxModule(t, crateManifest))
	body, form := upload("module", wasm)
	looked := c.do("POST", "/v1/connectors:inspect", body, form).want(200)
	if looked.text("requested", "bindings", "network", "hosts", 0) != "api.example.org" ||
		!strings.HasPrefix(looked.text("digest"), "sha256:") || len(looked.list("words")) == 0 {
		t.Errorf("%s", looked.body)
	}
	c.do("GET", "/v1/connectors/crate", nil).want(404, "not_found")
	a := c.do("POST", "/v1/connectors", body, form, once("install")).want(201)
	if a.header.Get("Location") != "/v1/connectors/crate" || a.text("moduleDigest") != looked.text("digest") ||
		a.text("signature", "status") != "unsigned" || a.text("abi", "family") != "sluice" {
		t.Errorf("%v %s", a.header, a.body)
	}
	if strings.Contains(string(a.body), "<b>") {
		t.Errorf("%s", a.body)
	}
	if again := c.do("POST", "/v1/connectors", body, form,
		once("install")).want(201); again.header.Get("openwop-Idempotent-Replay") != "true" {
		t.Error("not a replay")
	}
	c.do("POST", "/v1/connectors", body, form).want(200)
	c.do("POST", "/v1/connectors", object{"source": object{"type": "digest", "digest": a.text("moduleDigest")}}).want(200)
	c.do("POST", "/v1/connectors",
		object{"source": object{"type": "digest", "digest": "sha256:" + strings.Repeat("0", 64)}}).want(404, "not_found")
	c.do("POST", "/v1/connectors", object{"source": object{"type": "oci", "digest": "x"}}).want(400, "validation_error")

	if pins := c.do("GET", "/v1/publishers", nil).want(200); len(pins.list("data")) != 0 {
		t.Errorf("nothing is signed: %s", pins.body)
	}
	refused := func(status int, code string, parts ...string) {
		t.Helper()
		body, form := upload(parts...)
		c.do("POST", "/v1/connectors", body, form).want(status, code)
		c.do("POST", "/v1/connectors:inspect", body, form).want(status, code)
	}
	refused(400, "validation_error")
	refused(400, "validation_error", "manifest", "{}")
	refused(400, "validation_error", "module", wasm, "module", wasm)
	refused(400, "validation_error", "module", wasm, "other", "x")
	refused(400, "validation_error", "module", wasm, "expectedDigest", "x")
	refused(413, "payload_too_large", "module", wasm, "manifest", strings.Repeat("x", 257<<10))
	refused(422, "pack_integrity_failure", "module", wasm, "expectedDigest", "sha256:"+strings.Repeat("0", 64))
	refused(422, "module_invalid", "module", "no module")
	refused(422, "signature_invalid", "module", wasm, "signature", "x")
	refused(422, "connector_invalid", "module", wasm, "manifest", `{"protocol_version":"9"}`)
	escape := "\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x02\x0a\x01\x03env\x02sh\x00\x00"
	refused(422, "sandbox_escape_attempt", "module", escape, "manifest", crateManifest)
	c.do("POST", "/v1/connectors", []byte("--x"), header("Content-Type", "multipart/form-data; boundary=x")).want(400,
		"validation_error")
	changed, form2 := upload("module", string(boxModule(t, strings.Replace(crateManifest, "Box <b>", "Other", 1))))
	c.do("POST", "/v1/connectors", changed, form2).want(409, "connector_version_conflict")

	if v := c.do("GET", "/v1/connectors/crate/versions", nil).want(200); v.text("data", 0, "version") != "1.0.0" {
		t.Errorf("%s", v.body)
	}
	c.do("PUT", "/v1/connectors/crate/default", object{"version": "1.0.0"}).want(200)
	c.do("PUT", "/v1/connectors/crate/default", object{"version": "2.0.0"}).want(404)
	c.do("POST", "/v1/connections", object{"connectorName": "crate", "connectionId": "inuse"}).want(201)
	in := c.do("DELETE", "/v1/connectors/crate", nil).want(409, "connector_in_use")
	if fmt.Sprint(in.member("details", "connectionIds")) != "[inuse]" {
		t.Errorf("%s", in.body)
	}
	c.do("DELETE", "/v1/connections/inuse?data=erase", nil).want(204)
	c.do("DELETE", "/v1/connectors/crate", nil).want(204)
	c.do("DELETE", "/v1/connectors/crate", nil).want(404)
}

// box installs the connector and makes a connection of it.
func box(t *testing.T, c *client, id, mode string) string {
	t.Helper()
	body, form := upload("module", string(boxModule(t, boxManifest)))
	if a := c.do("POST", "/v1/connectors", body, form); a.status != 201 && a.status != 200 {
		t.Fatalf("%s", a.body)
	}
	c.do("POST", "/v1/connections",
		object{"connectorName": "box", "connectionId": id, "mode": mode, "settings": object{"ask": []any{}}}).want(201)
	t.Cleanup(func() {
		if err := theStore().DeleteConnection(t.Context(), store.ConnectionID(id), true); err != nil &&
			t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return "/v1/connections/" + id
}

// A connection from its making to its first run, and what is refused on the way.
func TestConnections(t *testing.T) {
	c := served(t)
	at := box(t, c, "conn", "live")
	conn := c.do("GET", at, nil).want(200)
	if conn.member("ready") != false || fmt.Sprint(conn.member("notReady")) == "[]" || conn.member("grant") != nil ||
		conn.text("mode") != "live" {
		t.Errorf("%s", conn.body)
	}
	c.do("POST", "/v1/runs", workflow("conn")).want(409, "connection_not_ready")
	for body, status := range map[string]int{`{"connectorName":"nobody"}`: 404,
		`{"connectorName":"box","connectionId":"conn"}`: 409,
		`{"connectorName":"box","connectionId":"No"}`:   400, `{"connectorName":"box","connectionId":"conformance-x"}`: 400,
		`{"connectorName":"conformance-noop"}`: 400, `{"connectorName":"box","connectionId":"b","mode":"odd"}`: 400,
		`{"connectorName":"box","connectionId":"b","settings":{"pause_ms":"SECRET"}}`: 400,
		`{"connectorName":"box","connectionId":"b","settings":[]}`:                    400} {
		if a := c.do("POST", "/v1/connections", body); a.status != status || strings.Contains(string(a.body), "SECRET") {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	revision := int(conn.number("revision"))
	c.do("PATCH", at, object{"displayName": "Mine"}, header("If-Match", fmt.Sprintf(`"%d"`, revision+7))).want(412,
		"precondition_failed")
	c.do("PATCH", at, object{"displayName": "Mine"}, header("If-Match", "7")).want(400, "validation_error")
	if a := c.do("PATCH", at, object{"displayName": "Mine"},
		header("If-Match", fmt.Sprintf(`"%d"`, revision))).want(200); a.text("displayName") != "Mine" ||
		a.number("revision") <= float64(revision) {
		t.Errorf("%s", a.body)
	}
	// A secret is written and never read.
	c.do("PUT", at+"/secrets/token", object{"value": "hunter2-hunter2"}).want(204)
	c.do("PUT", at+"/secrets/nobody", object{"value": "hunter2-hunter2"}).want(400, "validation_error")
	c.do("PUT", at+"/secrets/token", object{"value": ""}).want(400, "validation_error")
	c.do("PUT", at+"/secrets/token", object{"value": strings.Repeat("hunter2", 10_000)}).want(400, "validation_error")
	if a := c.do("GET", at+"/secrets", nil).want(200); a.member("data", 0, "set") != true ||
		a.text("data", 0, "delivery") != "sealed" {
		t.Errorf("%s", a.body)
	}
	g := c.do("GET", at+"/grants", nil).want(200)
	if g.text("requested", "bindings", "network", "hosts", 0) != "api.example.org" ||
		g.text("requested", "streams", 0, "name") != "answers" {
		t.Errorf("%s", g.body)
	}
	for _, wrong := range []string{`{}`, `{"scope":null}`, `{"scope":null,"accessMode":"forever"}`,
		`{"scope":{"streams":[{"name":"none"}]},"accessMode":"continuous"}`,
		`{"scope":{"streams":[{"name":"answers","fields":["none"]}]},"accessMode":"continuous"}`,
		`{"scope":{"streams":[{"name":"*"},{"name":"answers"}]},"accessMode":"continuous"}`,
		`{"scope":null,"accessMode":"continuous","expiresAt":"2001-01-01T00:00:00Z"}`} {
		c.do("POST", at+"/grants", wrong).want(400, "validation_error")
	}
	c.do("PUT", at+"/bindings", `{"filesystem":{"mounts":[{"name":"in","hostPath":"/tmp","mode":"ro"}]}}`).want(422,
		"binding_not_requested")
	c.do("PUT", at+"/bindings", `{"network":{"hosts":["evil.example"]}}`).want(422, "binding_not_requested")
	c.do("PUT", at+"/bindings", `{"network":{"hosts":["api.example.org"]},"interactive":true}`).want(200)
	granted := c.do("POST", at+"/grants", `{"scope":{"streams":[{"name":"*"}]},"accessMode":"continuous"}`).want(201)
	if granted.text("status") != "active" || !strings.HasPrefix(granted.text("approvedBy"), "key:") ||
		strings.Contains(string(granted.body), `"*"`) {
		t.Errorf("%s", granted.body)
	}
	if conn = c.do("GET", at, nil).want(200); conn.member("ready") != true {
		t.Fatalf("%s", conn.body)
	}
	if a := c.do("GET", "/v1/connections?connectorName=box&ready=true", nil).want(200); len(a.list("data")) != 1 {
		t.Errorf("%s", a.body)
	}
	// By its own name and by the connector's; one at a time.
	c.do("POST", "/v1/runs", `{"workflowId":"conn","inputs":{"scope":{"streams":[{"name":"none"}]}}}`).want(400,
		"validation_error")
	run := c.start(workflow("box"))
	if s := c.ended(run); s.text("status") != "completed" || s.text("sluice", "connectionId") != "conn" {
		t.Errorf("%s", s.body)
	}
	c.do("PATCH", at, `{"settings":{"ask":[{"kind":"otp","message":"Code?"}]}}`).want(200)
	run = c.start(workflow("conn"))
	c.suspended(run)
	active := c.do("POST", "/v1/runs", workflow("conn")).want(409, "run_already_active")
	if active.text("details", "activeRunId") != run || active.header.Get("Retry-After") == "" {
		t.Errorf("%s", active.body)
	}
	snap := c.do("GET", "/v1/runs/"+run, nil).want(200)
	if snap.member("interrupt", "interruptToken") != nil || snap.text("interrupt", "kind") != "clarification" {
		t.Errorf("%s", snap.body)
	}
	c.do("DELETE", at, nil).want(409, "run_already_active")
	c.do("DELETE", at+"/state", nil).want(409, "run_already_active")
	c.do("POST", "/v1/runs/"+run+"/interrupts/"+snap.text("currentNodeId"),
		`{"resumeValue":{"answers":{"code":"918273"}}}`).want(200)
	if s := c.ended(run); s.text("status") != "completed" {
		t.Errorf("%s", s.body)
	}
	if p := c.do("GET", "/v1/runs/"+run+"/events/poll", nil).want(200).checkEvents(); strings.Contains(string(p.body),
		"918273") || !strings.Contains(string(p.body), "[REDACTED]") {
		t.Errorf("%s", p.body)
	}
	// What the run collected.
	if a := c.do("GET", at+"/streams/answers/records", nil).want(200); len(a.list("data")) == 0 {
		t.Errorf("%s", a.body)
	}
	if a := c.do("GET", at+"/state", nil).want(200); a.text("connectionId") != "conn" ||
		a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s", a.body)
	}
	c.do("DELETE", at+"/state?stream=answers", nil).want(204)
	// A run that has the grant is cancelled.
	run = c.start(workflow("conn"))
	c.suspended(run)
	c.do("DELETE", at+"/grants/"+granted.text("grantId"), nil).want(204)
	if s := c.ended(run); s.text("status") != "cancelled" {
		t.Errorf("%s", s.body)
	}
	c.do("DELETE", at+"/grants/"+granted.text("grantId"), nil).want(204)
	c.do("POST", "/v1/runs", workflow("conn")).want(409, "connection_not_ready")
	c.do("DELETE", at+"/secrets/token", nil).want(204)
	c.do("DELETE", at+"?data=all", nil).want(400, "validation_error")

	// All of it is written down, and the secret is nowhere.
	log := c.do("GET", "/v1/audit?limit=500", nil).want(200)
	for _, action := range []string{"connection.created", "connection.changed", "secret.set", "secret.removed",
		"grant.approved", "grant.revoked", "interaction.answered", "state.reset"} {
		if !strings.Contains(string(log.body), `"action":"`+action+`"`) {
			t.Errorf("%s is not written down", action)
		}
	}
	for _, path := range []string{at, at + "/secrets", at + "/grants", "/v1/audit?limit=500", "/v1/runs/" + run,
		"/v1/connectors/box"} {
		if a := c.do("GET", path, nil).want(200); strings.Contains(string(a.body), "hunter2") {
			t.Errorf("%s shows the secret", path)
		}
	}
}

// What a test key may not use.
func TestTestKeys(t *testing.T) {
	c := served(t)
	at := box(t, c, "forlive", "live")
	box(t, c, "fortest", "test")
	k := c.as(key(t, access.NewKey{Scopes: all, Mode: access.Test}))
	k.do("GET", at, nil).want(403, "forbidden")
	k.do("GET", "/v1/connections/fortest", nil).want(200)
	k.do("POST", "/v1/connections", object{"connectorName": "box", "connectionId": "y"}).want(403, "forbidden")
	k.do("POST", "/v1/runs", workflow("forlive")).want(403, "forbidden")
	k.do("GET", "/v1/webhooks", nil).want(403, "forbidden")
	if a := k.do("GET", "/v1/connections?connectorName=box", nil).want(200); len(a.list("data")) != 1 {
		t.Errorf("%s", a.body)
	}
	if s := k.ended(k.start(workflow("conformance-noop"))); s.text("status") != "completed" {
		t.Errorf("%s", s.body)
	}
}

// A schedule, and refusals that name the member.
func TestSchedules(t *testing.T) {
	c := served(t)
	at := box(t, c, "sched", "live") + "/schedule"
	c.do("GET", at, nil).want(404, "not_found")
	for body, field := range map[string]string{`{}`: "", `{"cron":"x"}`: "cron",
		`{"intervalSeconds":0}`: "intervalSeconds", `{"cron":"* * * * *","intervalSeconds":60}`: "",
		`{"cron":"0 0 * * *","timezone":"Mars/Base"}`: "timezone",
		`{"intervalSeconds":3600,"jitterSeconds":-1}`: "jitterSeconds",
		`{"intervalSeconds":3600,"maxRetries":-1}`:    "maxRetries"} {
		a := c.do("PUT", at, body).want(400, "validation_error")
		if a.text("details", "code") != "schedule_invalid" || !strings.Contains(string(a.body), field) ||
			strings.Contains(string(a.body), "Mars") {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	c.do("PUT", at, `{"intervalSeconds":"x"}`).want(400, "validation_error")
	a := c.do("PUT", at, `{"intervalSeconds":86400}`).want(201)
	if a.header.Get("Location") != at || a.number("intervalSeconds") != 86400 {
		t.Errorf("%v %s", a.header, a.body)
	}
	c.do("PUT", at, `{"intervalSeconds":86400}`, header("If-Match", `"99"`)).want(412, "precondition_failed")
	c.do("PUT", at, `{"cron":"0 4 * * *"}`).want(200)
	if a := c.do("GET", at, nil).want(200); a.text("cron") != "0 4 * * *" {
		t.Errorf("%s", a.body)
	}
	if a := c.do("POST", at+"/pause", nil).want(200); a.text("effectiveMode") != "paused" {
		t.Errorf("%s", a.body)
	}
	c.do("POST", at+"/pause", nil).want(200)
	if a := c.do("POST", at+"/resume", nil); a.status != 200 && a.text("error") != "schedule_ineligible" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := c.do("GET", "/v1/schedules", nil).want(200); len(a.list("data")) != 1 {
		t.Errorf("%s", a.body)
	}
	if a := c.do("GET", at+"/history", nil).want(200); a.member("statistics", "totalRuns") != 0.0 {
		t.Errorf("%s", a.body)
	}
	if a := c.do("GET", "/v1/connections/sched", nil).want(200); a.text("schedule", "cron") == "" {
		t.Errorf("%s", a.body)
	}
	c.do("DELETE", at, nil).want(204)
	c.do("DELETE", at, nil).want(404)
}

// Keys are shown once, give no more than their maker has, and end at once.
func TestKeys(t *testing.T) {
	c := served(t)
	for body, want := range map[string]string{
		`{}`: "400 validation_error", `{"name":"k","scopes":["runs:fly"],"mode":"live"}`: "400 validation_error",
		`{"name":"k","scopes":["runs:read"],"mode":"odd"}`:                                     "400 validation_error",
		`{"name":"k","scopes":[],"mode":"live"}`:                                               "400 validation_error",
		`{"name":"k","scopes":["runs:read"],"mode":"live","expiresAt":"2001-01-01T00:00:00Z"}`: "400 validation_error",
	} {
		a := c.do("POST", "/v1/api-keys", body)
		if got := fmt.Sprint(a.status, " ", a.text("error")); got != want {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	body := object{"name": "reader", "scopes": []string{"runs:read", "keys:manage"}, "mode": "live"}
	a := c.do("POST", "/v1/api-keys", body, once("key")).want(201)
	secret, id := a.text("key"), a.text("keyId")
	if !strings.HasPrefix(secret, "slk_live_") || a.header.Get("Location") != "/v1/api-keys/"+id {
		t.Fatalf("%v %s", a.header, a.body)
	}
	if again := c.do("POST", "/v1/api-keys", body, once("key")).want(201); again.text("key") != secret ||
		again.header.Get("openwop-Idempotent-Replay") != "true" {
		t.Errorf("%s", again.body)
	}
	k := c.as(secret)
	k.do("GET", "/v1/runs", nil).want(200)
	if a := k.do("POST", "/v1/api-keys",
		object{"name": "more", "scopes": []string{"runs:read", "records:read"}, "mode": "live"}).want(403,
		"forbidden"); a.text("details", "scopeRequired") != "records:read" {
		t.Errorf("%s", a.body)
	}
	list := c.do("GET", "/v1/api-keys?limit=500", nil).want(200)
	if strings.Contains(string(list.body), secret) || !strings.Contains(string(list.body), id) {
		t.Error("the list shows the key, or not its id")
	}
	stream := k.follow("/v1/runs/" + c.start(workflow("conformance-noop")) + "/events")
	stream.rest()
	c.do("DELETE", "/v1/api-keys/"+id, nil).want(204)
	c.do("DELETE", "/v1/api-keys/"+id, nil).want(204)
	c.do("DELETE", "/v1/api-keys/key_none", nil).want(404)
	k.do("GET", "/v1/runs", nil).want(401, "key_revoked")
	soon := &answer{}
	// a time that is over on arrival is refused
	for life := 300 * time.Millisecond; soon.status != 201 && life < time.Minute; life *= 2 {
		soon = c.do("POST", "/v1/api-keys",
			object{"name": "short", "scopes": []string{"runs:read"}, "mode": "test", "expiresAt": time.Now().Add(life)})
	}
	soon.want(201)
	eventually(t, "the key expires", func() bool {
		return c.as(soon.text("key")).do("GET", "/v1/runs", nil).status == 401
	})
	c.as(soon.text("key")).do("GET", "/v1/runs", nil).want(401, "key_expired")
	log := c.do("GET", "/v1/audit?action=key.created&target="+id, nil).want(200)
	if len(log.list("data")) != 1 || strings.Contains(string(log.body), secret) {
		t.Errorf("%s", log.body)
	}
}

// What the host says of itself.
func TestSystem(t *testing.T) {
	c := served(t)
	if a := c.do("GET", "/v1/system", nil).want(200); a.text("sandbox", "engine") == "" || a.member("limits") == nil {
		t.Errorf("%s", a.body)
	}
	if a := c.as("").do("GET", "/readyz", nil).want(200); a.text("status") != "ok" || a.text("checks", "store") != "ok" ||
		a.text("checks", "scheduler") != "ok" {
		t.Errorf("%s", a.body)
	}
	c.as("").do("GET", "/metrics", nil).want(401, "unauthenticated")
	// One metric of each part that the daemon has to ask.
	if a := c.do("GET", "/metrics", nil).want(200); !bytes.Contains(a.body, []byte("\nsluice_runs_open{")) ||
		!bytes.Contains(a.body, []byte("\nsluice_workers{")) ||
		!bytes.Contains(a.body, []byte("\nsluice_store_free_bytes ")) {
		t.Errorf("%.200s", a.body)
	}
	first := c.do("GET", "/v1/audit?limit=2", nil).want(200)
	second := c.do("GET", "/v1/audit?limit=2&cursor="+first.text("nextCursor"), nil).want(200)
	if first.text("data", 1, "prevHash") != second.text("data", 0, "hash") {
		t.Errorf("%s %s", first.body, second.body)
	}
	for _, q := range []string{"from=x", "limit=0", "limit=501", "cursor=AAAA"} {
		if a := c.do("GET", "/v1/audit?"+q, nil); a.status != 400 {
			t.Errorf("%s: %d", q, a.status)
		}
	}
}

func TestWebhooks(t *testing.T) {
	c := served(t)
	for _, body := range []string{`{}`, `{"url":"https://x.example/h"}`, `{"url":"https://x.example/h","events":[]}`,
		`{"url":"https://x.example/h","events":["run.flew"]}`,
		`{"url":"ftp://x.example","events":["run.*"]}`, `{"url":"http://x.example","events":["run.*"]}`,
		`{"url":"https://u:p@x.example","events":["run.*"]}`, `{"url":"https://169.254.169.254/","events":["run.*"]}`} {
		c.do("POST", "/v1/webhooks", body).want(400, "validation_error")
	}
	body := object{"url": "http://127.0.0.1:1/hook", "events": []string{"run.completed"}, "tags": []string{"never"}}
	a := c.do("POST", "/v1/webhooks", body, once("hook")).want(201)
	id, secret := a.text("webhookId"), a.text("secret")
	if !strings.HasPrefix(secret, "whsec_") || a.header.Get("Location") != "/v1/webhooks/"+id {
		t.Errorf("%s", a.body)
	}
	c.do("POST", "/v1/webhooks", body, once("hook")).want(201)
	one := c.do("GET", "/v1/webhooks/"+id, nil).want(200)
	list := c.do("GET", "/v1/webhooks", nil).want(200)
	if one.text("status") != "active" || len(list.list("data")) != 1 ||
		strings.Contains(string(one.body)+string(list.body), secret) {
		t.Errorf("%s %s", one.body, list.body)
	}
	c.do("DELETE", "/v1/webhooks/"+id, nil).want(204)
	c.do("DELETE", "/v1/webhooks/"+id, nil).want(404)
	c.do("GET", "/v1/webhooks/"+id, nil).want(404)
	if log := c.do("GET", "/v1/audit?target="+id, nil).want(200); len(log.list("data")) != 2 {
		t.Errorf("%s", log.body)
	}
}

// A webhook says what went wrong, is tested, delivers again and has its secret
// replaced; nothing of a server's answer comes out.
func TestWebhookDeliveries(t *testing.T) {
	c := served(t)
	answer := http.StatusTeapot
	var mu sync.Mutex // guards what follows, and answer
	var ids, signatures []string
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		ids, signatures = append(ids, r.Header.Get("Webhook-Id")), append(signatures, r.Header.Get("Webhook-Signature"))
		w.WriteHeader(answer)
		_, _ = w.Write([]byte("the-private-page"))
	}))
	defer at.Close()
	made := c.do("POST", "/v1/webhooks",
		object{"url": at.URL, "events": []string{"run.completed"}, "tags": []string{"never"}}).want(201)
	one := "/v1/webhooks/" + made.text("webhookId")
	defer func() { c.do("DELETE", one, nil).want(204) }()

	failed := c.do("POST", one+":test", nil, once("test")).want(200)
	if failed.text("error") != "status" || failed.number("status") != 418 || failed.text("cause") != "test" {
		t.Errorf("%s", failed.body)
	}
	c.do("POST", one+":test", nil, once("test")).want(200) // the same answer, and no other delivery
	shown := c.do("GET", one, nil).want(200)
	if shown.text("lastError", "deliveryId") != failed.text("deliveryId") || shown.text("status") != "active" {
		t.Errorf("%s", shown.body)
	}
	mu.Lock()
	answer = http.StatusNoContent
	mu.Unlock()
	again := c.do("POST", one+"/deliveries/"+failed.text("deliveryId")+":redeliver", nil).want(200)
	if again.text("error") != "" || again.number("status") != 204 {
		t.Errorf("%s", again.body)
	}
	c.do("POST", one+"/deliveries/del_none:redeliver", nil).want(404)

	rotated := c.do("POST", one+":rotate", "{}", once("rotate")).want(200)
	if !strings.HasPrefix(rotated.text("secret"), "whsec_") || rotated.text("previousSecretUntil") == "" {
		t.Errorf("%s", rotated.body)
	}
	if same := c.do("POST", one+":rotate", "{}", once("rotate")).want(200); same.text("secret") != rotated.text("secret") {
		t.Errorf("%s, then %s", rotated.body, same.body)
	}
	c.do("POST", one+":rotate", `{"secret":"short"}`).want(400, "validation_error")
	c.do("POST", one+":test", nil).want(200)
	mu.Lock()
	if len(ids) != 3 || strings.Count(signatures[1], "v1,") != 1 || strings.Count(signatures[2], "v1,") != 2 {
		t.Errorf("%q %q", ids, signatures)
	}
	mu.Unlock()

	log := c.do("GET", one+"/deliveries", nil).want(200)
	page := c.do("GET", one+"/deliveries?limit=2", nil).want(200)
	rest := c.do("GET", one+"/deliveries?limit=2&cursor="+page.text("nextCursor"), nil).want(200)
	if len(log.list("data")) != 3 || len(page.list("data")) != 2 || len(rest.list("data")) != 1 {
		t.Errorf("%s %s %s", log.body, page.body, rest.body)
	}
	everything := string(log.body) + string(shown.body) + string(again.body) +
		string(c.do("GET", "/v1/webhooks", nil).want(200).body)
	if strings.Contains(everything, "private-page") || strings.Contains(everything, made.text("secret")) ||
		strings.Contains(everything, rotated.text("secret")) {
		t.Error(everything)
	}
	for action, want := range map[string]int{"webhook.tested": 2, "webhook.redelivered": 1, "webhook.rotated": 1} {
		if log := c.do("GET", "/v1/audit?action="+action+"&target="+made.text("webhookId"),
			nil).want(200); len(log.list("data")) != want {
			t.Errorf("%s: %s", action, log.body)
		}
	}
}

// Backups name files, so they are for the socket alone: neither a key nor a page may.
func TestBackupsAtTheSocket(t *testing.T) {
	c := served(t)
	c.do("POST", "/v1/backups", "{}").want(403, "forbidden")
	own, _ := session(t, c.base)
	c.as("").do("POST", "/v1/backups", "{}", own...).want(403, "forbidden")

	file := filepath.Join(t.TempDir(), "b.tar")
	s := atSocket(t)
	s.do("POST", "/v1/backups", object{"out": "b.tar", "plain": true}).want(400, "validation_error")
	s.do("POST", "/v1/backups", "{}").want(400, "validation_error") // for nobody
	a := s.do("POST", "/v1/backups", object{"out": file, "plain": true}).want(201)
	fi, err := os.Stat(file)
	if err != nil || fi.Mode().Perm() != 0o600 || a.text("file") != file || a.number("size") != float64(fi.Size()) ||
		a.member("verified") != true {
		t.Errorf("%s %v", a.body, err)
	}
	s.do("POST", "/v1/backups", object{"out": file, "plain": true}).want(400, "validation_error")
}

// What a run recorded is handed over once; its stored events are for the owner alone.
func TestRecordingAndTimeline(t *testing.T) {
	c := served(t)
	at := box(t, c, "recorded", "live")
	c.do("PUT", at+"/secrets/token", object{"value": "hunter2-hunter2"}).want(204)
	c.do("PUT", at+"/bindings", `{"network":{"hosts":["api.example.org"]},"interactive":true}`).want(200)
	c.do("POST", at+"/grants", `{"scope":null,"accessMode":"continuous"}`).want(201)
	s := atSocket(t)
	run := s.do("POST", "/v1/runs",
		object{"workflowId": "recorded", "given": object{"record": true}}).want(201).text("runId")
	if end := c.ended(run); end.text("status") != "completed" {
		t.Fatalf("%s", end.body)
	}
	path := "/v1/runs/" + run + "/recording"
	eventually(t, "the recording", func() bool {
		a := s.do("GET", path, nil)
		return a.status == 200 && strings.Contains(a.text("text"), `"connector_id"`) &&
			!strings.Contains(string(a.body), "hunter2")
	})
	s.do("GET", path, nil).want(404, "not_found")

	events := "/v1/runs/" + run + "/timeline"
	c.do("GET", events, nil).want(403, "forbidden")
	first := s.do("GET", events, nil).want(200)
	if n := len(first.list("events")); n == 0 || len(s.do("GET", events+"?from=1", nil).want(200).list("events")) != n-1 {
		t.Errorf("%s", first.body)
	}
}
