package timezone_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/host/timezone"
	"github.com/sluicehost/sluice/store"
)

func manifest(t *testing.T, bindings string) *abi.Manifest {
	t.Helper()
	m, err := abi.ReadManifest([]byte(`{"protocol_version": "0.1.0", "connector_id": "x", "version": "1", "display_name": "X",
		"runtime_requirements": {"bindings": ` + bindings + `}, "sluice": {}, "streams": [{"name": "a", "semantics": "append_only", "primary_key": ["id"],
		"schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestKind: what the kind asks for, how it is approved, shown, compared and taken back,
// and what a run gets of it.
func TestKind(t *testing.T) {
	k := timezone.New()
	kinds := binding.Kinds{k}
	m, none := manifest(t, `{"timezone": {"required": true, "as": "offset"}}`), manifest(t, `{}`)
	if added := grant.Added(kinds, none, m); len(added) != 1 || added[0].String() != "know the time zone of this machine" {
		t.Errorf("added %v", added)
	}
	if a := k.Asks(m, store.Approved{})[0]; a.Flag != "--timezone" || a.Lacks == "" {
		t.Errorf("not approved: %+v", a)
	}
	if b, err := k.Open(m, store.Connection{}); b != nil || err != nil {
		t.Errorf("opened without approval: %v, %v", b, err)
	}
	q := host.Bindings{Other: map[string]json.RawMessage{"timezone": json.RawMessage("true")}}
	var c store.Connection
	if err := k.Approve(binding.Approval{Manifest: none, Bindings: q}, &c); err == nil {
		t.Error("what is not asked for was approved")
	}
	if err := k.Approve(binding.Approval{Manifest: m, Bindings: q}, &c); err != nil {
		t.Fatal(err)
	}
	if a := k.Asks(m, c.Approved)[0]; a.Lacks != "" || len(a.Missing) > 0 {
		t.Errorf("approved: %+v", a)
	}
	var shown host.Bindings
	kinds.Show(c, m, &shown)
	if string(shown.Other["timezone"]) != "true" {
		t.Errorf("shown %v", shown.Other)
	}
	b, err := k.Open(m, c)
	if err != nil || !b.Takes(abi.CallTimezone, nil) {
		t.Fatalf("opened %v, %v", b, err)
	}
	var reply struct{ Timezone string }
	text, errno := b.Handle(t.Context(), abi.CallTimezone, nil)
	if err := json.Unmarshal(text, &reply); err != nil || errno != abi.OK || len(reply.Timezone) != len("+00:00") {
		t.Errorf("reply %s, %v, %v", text, errno, err)
	}
	before := c.Approved
	if missing := k.Withdraw(&c.Approved, []string{"timezone"}); len(missing) > 0 || !kinds.Narrower(before, c.Approved) {
		t.Errorf("taken back: %v, %v", missing, c.Approved)
	}
}

// TestCheck: the part of a manifest is the kind's to refuse.
func TestCheck(t *testing.T) {
	kinds := binding.Kinds{timezone.New()}
	for part, ok := range map[string]bool{`{}`: true, `{"as": "name"}`: true, `{"as": "city"}`: false, `{"as": 1}`: false} {
		if err := kinds.Check(manifest(t, `{"timezone": `+part+`}`)); (err == nil) != ok {
			t.Errorf("%s: %v", part, err)
		}
	}
}
