package api_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/tests/build"
)

// TestGiven runs a module that is not installed, on what its owner gives for this run
// alone: nothing of it stays but the run and its connection.
func TestGiven(t *testing.T) {
	c := served(t)
	wasm, err := build.Guest("examples/ask")
	if err != nil {
		t.Fatal(err)
	}
	manifest := []byte(strings.NewReplacer("/box", "/given", `"box"`, `"given"`).Replace(boxManifest))
	settings := json.RawMessage(`{"ask":[{"kind":"otp","message":"One"},{"kind":"otp","message":"Two"}]}`)
	bindings := host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"api.example.org"}}}
	doc := object{"inputs": object{}, "given": host.Overrides{
		Connection: "given-box", Manifest: manifest, Settings: settings, Record: true, TimeOuts: true,
		Secrets: map[string]string{"token": "s3cr3t-of-one-run"}, Bindings: bindings,
	}}
	body := func(doc object) ([]byte, option) {
		return upload("run", string(must(json.Marshal(doc))), "module", string(wasm))
	}
	b, kind := body(doc)

	lacking := key(t, access.NewKey{Scopes: []access.Scope{access.RunsCreate, access.ConnectorsManage,
		access.ConnectionsManage, access.GrantsApprove}})
	a := c.as(lacking).do("POST", "/v1/runs", b, kind).want(403, "forbidden")
	if a.member("details", "scopeRequired") != "secrets:write" {
		t.Errorf("%s", a.body)
	}
	run := c.do("POST", "/v1/runs", b, kind).want(201).text("runId")
	asked := "" // the question before
	next := func(run string) string {
		for {
			id := c.do("GET", "/v1/assistance?runId="+run, nil).want(200).text("data", 0, "interactionId")
			if id != "" && id != asked {
				asked = id
				return id
			}
			runtime.Gosched()
		}
	}
	for _, outcome := range []object{{"status": "timeout"}, {"status": "success", "data": object{"code": "1234"}}} {
		outcome["interactionId"] = next(run)
		c.do("POST", "/v1/runs/"+run+"/interaction", outcome).want(202)
	}
	if s := c.ended(run); s.member("status") != "completed" {
		t.Errorf("%s", s.body)
	}
	if r := c.do("GET", "/v1/runs/"+run+"/recording", nil).want(200); r.member("text") == "" {
		t.Errorf("%s", r.body)
	}
	c.do("GET", "/v1/runs/"+run+"/recording", nil).want(404, "not_found")
	if r := c.do("GET", "/v1/runs/"+run+"/requests", nil).want(200); len(r.member("data").([]any)) != 0 {
		t.Errorf("it asked no server: %s", r.body)
	}
	c.do("GET", "/v1/connectors/given", nil).want(404, "not_found")

	c.do("GET", "/v1/runs/"+run+"/timeline", nil).want(403, "forbidden")

	// Of a run that was not given time-outs an answer is success or cancelled.
	doc["given"] = host.Overrides{Connection: "given-box", Manifest: manifest, Settings: settings, Bindings: bindings}
	b, kind = body(doc)
	run = c.do("POST", "/v1/runs", b, kind).want(201).text("runId")
	c.do("POST", "/v1/runs/"+run+"/interaction", object{"interactionId": next(run), "status": "timeout"}).want(400,
		"validation_error")
	c.do("POST", "/v1/runs/"+run+"/cancel", nil).want(200)
	c.ended(run)
}

// TestGrantGiven gives a connection of a module that is not installed what is asked for:
// what is given again is added, and terms replace those before.
func TestGrantGiven(t *testing.T) {
	c := served(t)
	wasm, err := build.Guest("examples/ask")
	if err != nil {
		t.Fatal(err)
	}
	manifest := []byte(strings.NewReplacer("/box", "/granted", `"box"`, `"granted"`).Replace(boxManifest))
	give := func(who *client, g *host.Overrides, terms *host.GrantTerms) *answer {
		b, kind := upload("grant", string(must(json.Marshal(host.ConnectorGrant{Overrides: g, Terms: terms}))),
			"module", string(wasm))
		return who.do("POST", "/v1/connections:grant", b, kind)
	}
	first := &host.Overrides{Connection: "granted-box", Manifest: manifest,
		Bindings: host.Bindings{Network: &host.NetworkBinding{Hosts: []string{"api.example.org"}}}}
	lacking := key(t, access.NewKey{Scopes: []access.Scope{access.GrantsApprove, access.ConnectionsManage}})
	give(c.as(lacking), first, nil).want(403, "forbidden")
	give(c, first, nil).want(200)
	again := &host.Overrides{Connection: "granted-box", Manifest: manifest}
	a := give(c, again, &host.GrantTerms{AccessMode: "single_use"}).want(200)
	if a.member("grant", "accessMode") != "single_use" ||
		a.member("bindings", "network", "hosts", 0) != "api.example.org" {
		t.Errorf("%s", a.body)
	}
	give(c, again, &host.GrantTerms{AccessMode: "sometimes"}).want(400, "validation_error")
}
