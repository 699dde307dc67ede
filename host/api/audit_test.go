package api_test

import (
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// A key that lacks a scope is written down, without letting it fill the disk.
// From is inclusive, until is not.
func TestDeniedScopesAreAudited(t *testing.T) {
	c := served(t)
	poor := key(t, access.NewKey{Scopes: []access.Scope{access.ManifestRead}})
	for range 15 {
		c.as(poor).do("GET", "/v1/runs", nil).want(403, "forbidden")
	}
	c.as(poor).do("POST", "/v1/runs", `{}`).want(403, "forbidden")
	id, _, _ := strings.Cut(strings.TrimPrefix(poor, "slk_live_"), "_")
	at, counts := "", map[string]int{}
	for _, e := range c.do("GET", "/v1/audit?action=scope.denied&limit=500&actor=key:key_"+id,
		nil).want(200).list("data") {
		at = member(e, "at").(string)
		counts[member(e, "details", "code").(string)]++
	}
	if counts["runs:read"] != 10 || counts["runs:create"] != 1 || len(counts) != 2 {
		t.Errorf("%v", counts)
	}
	c.do("GET", "/v1/audit?until=x", nil).want(400, "validation_error")
	for _, e := range c.do("GET", "/v1/audit?until="+at+"&actor=key:key_"+id, nil).want(200).list("data") {
		t.Errorf("until %s: %v", at, e)
	}
	if n := len(c.do("GET", "/v1/audit?from="+at+"&limit=500&actor=key:key_"+id, nil).want(200).list("data")); n != 11 {
		t.Errorf("from: %d", n)
	}
}

// A run of a conformance connector has a connection of its own, so a key that is
// for certain connections can neither start nor see one.
func TestRestrictedKeyAndConformance(t *testing.T) {
	c := served(t)
	few := c.as(key(t, access.NewKey{Scopes: all, ConnectionIDs: []store.ConnectionID{"elsewhere"}}))
	few.do("POST", "/v1/runs", `{"workflowId":"conformance-noop"}`).want(400, "validation_error")
	few.do("POST", "/v1/runs", `{"workflowId":"conformance-noop"}`, once("restricted")).want(400, "validation_error")
	run := c.do("POST", "/v1/runs", `{"workflowId":"conformance-noop"}`).want(201).text("runId")
	few.do("GET", "/v1/runs/"+run, nil).want(404, "not_found")
}

// Logins, and attempts, are in the audit log under names that it has.
func TestLoginsAreAudited(t *testing.T) {
	c := served(t)
	own := []option{header("Origin", c.base), header("Sec-Fetch-Site", "same-origin")}
	login, err := shared.d.Server.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(login.URL, "#")
	c.as("").do("POST", "/ui/session", `{"token":"wrong"}`, own...).want(401)
	c.as("").do("POST", "/ui/session", `{"token":"`+token+`"}`, own...).want(200)
	for _, action := range []string{"login.failed", "session.created"} {
		eventually(t, action, func() bool {
			return len(c.do("GET", "/v1/audit?action="+action, nil).want(200).list("data")) > 0
		})
	}
}

// One host that has its store to itself has no copies of its log.
func TestAuditCopies(t *testing.T) {
	c := served(t)
	if all := c.do("GET", "/v1/audit/copies", nil).want(200).list("data"); len(all) != 0 {
		t.Errorf("%v", all)
	}
	c.as(key(t, access.NewKey{Scopes: []access.Scope{access.ManifestRead}})).do("GET", "/v1/audit/copies", nil).
		want(403, "forbidden")
}
