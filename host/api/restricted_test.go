package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// asks makes a connection of examples/ask.
func asks(t *testing.T, id, mode string) store.ConnectionID {
	t.Helper()
	x, err := shared.d.Service.Connector(t.Context(), "ask")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := store.Connection{ID: store.ConnectionID(id), ConnectorID: store.ConnectorID(x.ConnectorID),
		Mode: mode, Enabled: true,
		Manifest: x.Manifest, Digest: store.Digest(x.ModuleDigest), CreatedAt: now, UpdatedAt: now}
	if err := theStore().PutConnection(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theStore().DeleteConnection(t.Context(), c.ID, true); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return c.ID
}

// What is about every connection is nothing for a key that is for some, or for
// tests; with every scope. A module that one of them installs would run in all
// connections of its connector.
func TestWhole(t *testing.T) {
	c := served(t)
	want := []string{"DELETE /v1/connectors/:connectorName", "DELETE /v1/webhooks/:webhookId", "GET /v1/audit",
		"GET /v1/audit/copies", "GET /v1/hosts", "GET /v1/hosts/admitted", "GET /v1/hosts/lost", "GET /v1/publishers",
		"GET /v1/runs/:runId/recording", "GET /v1/webhooks",
		"GET /v1/webhooks/:webhookId", "GET /v1/webhooks/:webhookId/deliveries", "POST /v1/authorizations",
		"POST /v1/connections:grant", "POST /v1/connectors", "POST /v1/webhooks",
		"POST /v1/webhooks/:webhookId/deliveries/:deliveryId:redeliver", "POST /v1/webhooks/:webhookId:rotate",
		"POST /v1/webhooks/:webhookId:test", "PUT /v1/connectors/:connectorName/default"}
	var whole []string
	for _, r := range table(t) {
		if !r.Whole {
			continue
		}
		whole = append(whole, r.Method+" "+r.Template())
		for _, n := range []access.NewKey{{Scopes: all, ConnectionIDs: []store.ConnectionID{"some"}},
			{Scopes: all, Mode: access.Test}} {
			var body any
			if writes(r) {
				body = "{}"
			}
			a := c.as(key(t, n)).do(r.Method, filled(r, "connectorName", "ask"), body, once("whole")).want(403, "forbidden")
			if a.member("details") != nil {
				t.Errorf("%s", a.body)
			}
		}
	}
	slices.Sort(whole)
	if !slices.Equal(whole, want) {
		t.Errorf("routes about everything: %v", whole)
	}
}

// Lists show a key what it may know of and nothing else.
func TestSight(t *testing.T) {
	c := served(t)
	seen, hidden, tested := asks(t, "sight-seen", "live"), asks(t, "sight-hidden", "live"), asks(t, "sight-tested", "test")
	for _, id := range []store.ConnectionID{seen, hidden, tested} {
		collect(t, id, "answers")
	}
	some := c.as(key(t, access.NewKey{Scopes: all, ConnectionIDs: []store.ConnectionID{seen}}))
	test := c.as(key(t, access.NewKey{Scopes: all, Mode: access.Test}))
	for _, path := range []string{"/v1/connections", "/v1/connectors", "/v1/connectors/ask", "/v1/connectors/ask/versions",
		"/v1/runs?limit=500"} {
		for own, who := range map[store.ConnectionID]*client{seen: some, tested: test} {
			a := who.do("GET", path, nil).want(200)
			for _, id := range []store.ConnectionID{seen, hidden, tested} {
				if has := strings.Contains(string(a.body), string(id)); has != (id == own) {
					t.Errorf("%s for who sees %s: %s is there: %v", path, own, id, has)
				}
			}
		}
	}
	test.do("GET", "/v1/workflows/"+string(hidden), nil).want(403, "forbidden")
	test.do("GET", "/v1/workflows/"+string(tested), nil).want(200)
}

// A run that may not be known of has as little waiting as one that does not
// exist.
func TestForeignAssistance(t *testing.T) {
	c := served(t)
	id := asks(t, "foreign-asks", "live")
	row := store.Run{ID: "run_foreign-asks", ConnectionID: id, Status: "active", StartedAt: time.Now(),
		TriggerKind: "manual"}
	lease, err := theStore().Acquire(t.Context(), row, shared.d.Host.ID, shared.d.Host.Epoch, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, lease, row)
	k := c.as(key(t, access.NewKey{Scopes: all, ConnectionIDs: []store.ConnectionID{"another"}}))
	there := k.do("GET", "/v1/assistance?runId=run_foreign-asks", nil).want(404, "not_found")
	nowhere := k.do("GET", "/v1/assistance?runId=run_none", nil).want(404, "not_found")
	if string(there.body) != string(nowhere.body) {
		t.Errorf("%s, %s", there.body, nowhere.body)
	}
	c.do("GET", "/v1/assistance?runId=run_foreign-asks", nil).want(200)
	if n := len(k.do("GET", "/v1/assistance", nil).want(200).list("data")); n != 0 {
		t.Errorf("%d items of others", n)
	}
}

func end(t *testing.T, lease store.Lease, row store.Run, events ...store.Event) {
	t.Helper()
	now := time.Now()
	row.Status, row.FinishedAt = "succeeded", &now
	events = append(events, store.Event{ID: "evt_00000000000000ff", Type: "run.completed", OccurredAt: now, RunID: row.ID,
		ConnectionID: row.ConnectionID, Data: json.RawMessage(`{}`)})
	receipt, err := theStore().Submit(t.Context(), &store.Commit{Lease: lease, Run: &row, End: true, Events: events})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A restricted key lists and revokes keys as restricted as itself.
func TestKeysOfOthers(t *testing.T) {
	c := served(t)
	scopes := []access.Scope{access.KeysManage, access.RunsRead}
	manager := c.as(key(t, access.NewKey{Scopes: scopes, ConnectionIDs: []store.ConnectionID{"one", "two"}}))
	tests := c.as(key(t, access.NewKey{Scopes: scopes, Mode: access.Test}))
	id := func(name string, n access.NewKey) string {
		n.Name, n.Scopes = name, scopes
		key(t, n)
		for after := ""; ; {
			list, err := shared.d.Server.Access().Keys.List(t.Context(), after, 1000)
			if err != nil || len(list) == 0 {
				t.Fatalf("no key %s: %v", name, err)
			}
			for _, k := range list {
				if after = k.KeyID; k.Name == name {
					return after
				}
			}
		}
	}
	own, whole := id("own-one", access.NewKey{ConnectionIDs: []store.ConnectionID{"one"}}), id("of-all", access.NewKey{})
	part, test := id("one-and-three", access.NewKey{ConnectionIDs: []store.ConnectionID{"one", "three"}}),
		id("for-tests", access.NewKey{Mode: access.Test})
	listed := func(c *client) string {
		var names []string
		for cursor := ""; ; {
			a := c.do("GET", "/v1/api-keys?limit=1&cursor="+cursor, nil).want(200)
			for _, k := range a.list("data") {
				names = append(names, member(k, "keyId").(string))
			}
			if cursor = a.text("nextCursor"); cursor == "" {
				return strings.Join(names, " ")
			}
		}
	}
	for _, x := range []struct {
		who    *client
		sees   string
		hidden []string
	}{{manager, own, []string{whole, part, test}}, {tests, test, []string{own, whole, part}}} {
		list := listed(x.who)
		if !strings.Contains(list, x.sees) {
			t.Errorf("%s is not in %s", x.sees, list)
		}
		for _, other := range x.hidden {
			if strings.Contains(list, other) {
				t.Errorf("%s is in %s", other, list)
			}
			x.who.do("DELETE", "/v1/api-keys/"+other, nil).want(404, "not_found")
		}
		x.who.do("DELETE", "/v1/api-keys/"+x.sees, nil).want(204)
	}
	c.do("DELETE", "/v1/api-keys/"+whole, nil).want(204)
}

// The answer with a new key is given again to who made it. Another who knows body
// and idempotency key has not its scopes.
func TestSecretOfAnother(t *testing.T) {
	c := served(t)
	other := c.as(key(t, access.NewKey{Scopes: []access.Scope{access.KeysManage}}))
	body := `{"name":"ci","scopes":["grants:approve"],"mode":"live"}`
	first := c.do("POST", "/v1/api-keys", body, once("secret-of-another")).want(201)
	if first.text("key") == "" {
		t.Fatalf("%s", first.body)
	}
	stolen := other.do("POST", "/v1/api-keys", body, once("secret-of-another")).want(201)
	if stolen.text("key") != "" || stolen.member("secretOmitted") != true || stolen.text("keyId") != first.text("keyId") {
		t.Errorf("another got %s", stolen.body)
	}
	if again := c.do("POST", "/v1/api-keys", body,
		once("secret-of-another")).want(201); string(again.body) != string(first.body) {
		t.Errorf("%s, then %s", first.body, again.body)
	}
}

// What is kept of a request and shown in every list is bounded.
func TestRequestBounds(t *testing.T) {
	c := served(t)
	big := `{"a":"` + strings.Repeat("x", 50_000) + `"}`
	for _, body := range []string{`{"workflowId":"none","configurable":` + big + `}`,
		`{"workflowId":"none","metadata":` + big + `}`,
		`{"workflowId":"none","tags":["` + strings.Repeat("x", 257) + `"]}`} {
		a := c.do("POST", "/v1/runs", body).want(400, "validation_error")
		if strings.Contains(a.text("details", "fields", 0, "path"), "workflowId") {
			t.Errorf("%.40s: %s", body, a.body)
		}
	}
	id := asks(t, "bounds", "live")
	collect(t, id, "answers")
	run := c.do("GET", "/v1/runs?connectionId=bounds", nil).text("data", 0, "runId")
	for _, overlay := range []string{`{"configurable":` + big + `}`, `{"tags":["` + strings.Repeat("x", 257) +
		`"]}`, `{"tags":[""]}`} {
		c.do("POST", "/v1/runs/"+run+":fork", `{"fromSeq":0,"mode":"branch","runOptionsOverlay":`+overlay+
			`}`).want(400, "validation_error")
	}
}

// A list of runs that are over reads no log, however long those are: what it
// says of the end stands in the rows. The event of these runs says nothing.
func TestListReadsNoLog(t *testing.T) {
	c := served(t)
	collect(t, asks(t, "no-log", "live"), "answers")
	a := c.do("GET", "/v1/runs?connectionId=no-log", nil).want(200)
	if a.text("data", 0, "sluice", "result") != "succeeded" || a.text("data", 0, "status") != "completed" {
		t.Errorf("%s", a.body)
	}
}

// A log above 8 MiB loses its oldest events that are no transition, in one
// pass and in order.
func TestLargeBundle(t *testing.T) {
	c := served(t)
	id := asks(t, "bundle", "live")
	row := store.Run{ID: "run_bundle", ConnectionID: id, Status: "active", StartedAt: time.Now(), TriggerKind: "manual"}
	lease, err := theStore().Acquire(t.Context(), row, shared.d.Host.ID, shared.d.Host.Epoch, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	const many = 20_000
	note := json.RawMessage(`{"message":"` + strings.Repeat("x", 600) + `"}`)
	at := time.Now()
	event := func(typ string) store.Event {
		return store.Event{Type: typ, OccurredAt: at, RunID: row.ID, ConnectionID: id, Data: note}
	}
	for n := 0; n < many; {
		commit := &store.Commit{Lease: lease}
		for ; n < many && len(commit.Events) < 500; n++ {
			e := event("run.progress_reported")
			if n == 0 {
				e = event("run.started")
			}
			e.ID = store.EventID(fmt.Sprintf("evt_%016x", n))
			commit.Events = append(commit.Events, e)
		}
		receipt, err := theStore().Submit(t.Context(), commit)
		if err == nil {
			_, err = receipt.Result()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	end(t, lease, row)
	a := c.do("GET", "/v1/runs/run_bundle/debug-bundle", nil).want(200)
	events := a.list("events")
	if a.member("truncated") != true || len(a.body) > 20<<20 || len(events) < 5000 {
		t.Fatalf("truncated: %v, %d events, %d bytes", a.member("truncated"), len(events), len(a.body))
	}
	last := float64(-1)
	for i, e := range events {
		seq, _ := member(e, "sequence").(float64)
		if seq <= last {
			t.Fatalf("event %d has sequence %v behind %v", i, seq, last)
		}
		last = seq
	}
	if first := member(events[0], "type"); first != "run.started" || last != many {
		t.Errorf("from %v to %v", first, last)
	}
}

// Who may install but not grant cannot put a suspicious module in the place
// of one that was granted; the flag alone is not their second look.
func TestForce(t *testing.T) {
	c := served(t)
	form := func(force string) []byte {
		return []byte("--x\r\nContent-Disposition: form-data; name=\"module\"\r\n\r\nnone\r\n--x\r\nContent-Disposition: form-data; name=\"force\"\r\n\r\n" + force + "\r\n--x--\r\n")
	}
	media := header("Content-Type", "multipart/form-data; boundary=x")
	installer := c.as(key(t, access.NewKey{Scopes: []access.Scope{access.ConnectorsManage}}))
	if a := installer.do("POST", "/v1/connectors", form("true"), media).want(403, "forbidden"); a.text("details",
		"scopeRequired") != string(access.GrantsApprove) {
		t.Errorf("%s", a.body)
	}
	installer.do("POST", "/v1/connectors", form("false"), media).want(422)
	c.do("POST", "/v1/connectors", form("true"), media).want(422)
}
