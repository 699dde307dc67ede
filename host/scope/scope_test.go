package scope_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/scope"
)

const manifestText = `{"protocol_version":"0.1.0","connector_id":"c","version":"1","display_name":"C","streams":[
 {"name":"messages","semantics":"append_only","primary_key":["id","day"],"consent_time_field":"at","selection":{"resource_field":"folder"},
  "schema":{"type":"object","required":["id","folder"],"properties":{"id":{},"day":{},"folder":{},"at":{"type":"string","format":"date-time"},"text":{}}}},
 {"name":"labels","semantics":"mutable_state","primary_key":"id","schema":{"type":"object","properties":{"id":{},"text":{}}}},
 {"name":"loose","semantics":"mutable_state","primary_key":"id","availability":{"state":"unsupported_in_mode"},"schema":{"type":"object","properties":{"id":{}},"additionalProperties":true}},
 {"name":"drafts","semantics":"mutable_state","primary_key":"id","availability":{"state":"unsupported_in_mode"},"schema":{"type":"object","properties":{"id":{}}}}]}`

func manifest(t *testing.T) *abi.Manifest {
	t.Helper()
	m, err := abi.ReadManifest([]byte(manifestText))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func normalise(t *testing.T, explicit, grant, since string) (string, error) {
	t.Helper()
	s, err := scope.Normalise(scope.Request{Manifest: manifest(t), Explicit: json.RawMessage(explicit),
		Grant: json.RawMessage(grant), Since: since})
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), nil
}

// one is a scope of one entry.
func one(members string) string { return `{"streams":[{` + members + `}]}` }

// What a scope becomes.
func TestNormalise(t *testing.T) {
	for _, c := range []struct{ name, explicit, grant, since, want string }{
		{"nothing asked", "", "", "", `{"streams":[{"name":"messages"},{"name":"labels"}]}`},
		{"null is nothing", "null", "null", "", `{"streams":[{"name":"messages"},{"name":"labels"}]}`},
		{"the connection's bound, where there is a time field", "", "", "2026-01-01",
			`{"streams":[{"name":"messages","time_range":{"since":"2026-01-01"}},{"name":"labels"}]}`},
		{"the grant's scope", "", one(`"name":"labels"`), "2026-01-01", one(`"name":"labels"`)},
		{"an unsupported stream may be named", one(`"name":"drafts"`), "", "", one(`"name":"drafts"`)},
		{"the bound is for no explicit scope only", one(`"name":"messages"`), "", "2026-01-01", one(`"name":"messages"`)},
		{"fields: required, key", one(`"name":"messages","fields":["text"]`), "", "",
			one(`"name":"messages","fields":["text","id","folder","day"]`)},
		{"fields: the time field if there is a range", one(`"name":"messages","fields":[],"time_range":{}`), "", "",
			one(`"name":"messages","fields":["id","folder","day","at"],"time_range":{}`)},
		{"fields: own order and repeats stay", one(`"name":"messages","fields":["text","day","text"]`), "", "",
			one(`"name":"messages","fields":["text","day","text","id","folder"]`)},
		{"fields: null is absent", one(`"name":"messages","fields":null,"resources":null,"time_range":null`), "", "",
			one(`"name":"messages"`)},
		{"fields: no range, no time field", one(`"name":"messages","fields":["text"]`), "", "",
			one(`"name":"messages","fields":["text","id","folder","day"]`)},
		{"a stored grant is read as it was meant", "", one(`"name":"labels","fields":["gone"],"time_range":{"until":"2026"}`),
			"", one(`"name":"labels","fields":["gone","id"],"time_range":{"until":"2026"}`)},
		{"an open schema has members that it does not declare", one(`"name":"loose","fields":["anything"]`), "", "",
			one(`"name":"loose","fields":["anything","id"]`)},
		{"resources [] restricts nothing", one(`"name":"labels","resources":[]`), "", "", one(`"name":"labels"`)},
		{"blank resources are allowed", one(`"name":"labels","resources":[""]`), "", "",
			one(`"name":"labels","resources":[""]`)},
		{"other members pass", one(`"name":"labels","note":{"a":[1, 2.0]},"x":null`), "", "",
			one(`"name":"labels","note":{"a":[1,2.0]},"x":null`)},
		{"bounds stay as spelled", one(`"name":"messages","time_range":{"since":"2026-01","until":null}`), "", "",
			one(`"name":"messages","time_range":{"since":"2026-01"}`)},
		{"inside the grant", one(
			`"name":"messages","fields":["text"],"resources":["a"],"time_range":{"since":"2026-02-01T01:00:00+01:00","until":"2026-03"}`),
			one(`"name":"messages","fields":["text"],"resources":["a","b"],"time_range":{"since":"2026-02-01T00:00:00Z","until":"2026-04"}`), "",
			one(`"name":"messages","resources":["a"],"fields":["text","id","folder","day","at"],"time_range":{"since":"2026-02-01T01:00:00+01:00","until":"2026-03"}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := normalise(t, c.explicit, c.grant, c.since)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is wrong with a scope, in the order of the checks.
func TestRefused(t *testing.T) {
	many := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	granted := one(`"name":"messages","fields":["text","at"],"resources":["a"],"time_range":{"since":"2026-01-01","until":"2026-02-01"}`)
	for _, c := range []struct{ name, explicit, grant, code, member string }{
		{"no object", `[]`, "", "scope_empty", "scope"},
		{"no JSON", `{`, "", "scope_empty", "scope"},
		{"no streams", `{}`, "", "scope_empty", "streams"},
		{"null streams", `{"streams":null}`, "", "scope_empty", "streams"},
		{"empty streams", `{"streams":[]}`, "", "scope_empty", "streams"},
		{"1 not an object", `{"streams":["labels"]}`, "", "scope_stream_name_blank", "streams[0].name"},
		{"1 no name", one(``), "", "scope_stream_name_blank", "streams[0].name"},
		{"1 blank", one(`"name":"\t"`), "", "scope_stream_name_blank", "streams[0].name"},
		{"1 number", one(`"name":7`), "", "scope_stream_name_blank", "streams[0].name"},
		{"2 wildcard", one(`"name":"*"`), "", "scope_wildcard", "streams[0].name"},
		{"3 unknown", one(`"name":"nothing"`), "", "scope_stream_unknown", "streams[0].name"},
		{"4 twice", `{"streams":[{"name":"labels"},{"name":"labels"}]}`, "", "scope_duplicate_stream", "streams[1].name"},
		{"5 view", one(`"name":"labels","view":"v"`), "", "scope_view_unresolved", "streams[0].view"},
		{"5 null view", one(`"name":"labels","view":null`), "", "scope_view_unresolved", "streams[0].view"},
		{"6 necessity", one(`"name":"labels","necessity":null`), "", "scope_necessity_present", "streams[0].necessity"},
		{"5 before 6", one(`"name":"labels","necessity":1,"view":1`), "", "scope_view_unresolved", "streams[0].view"},
		{"7 text", one(`"name":"labels","resources":"a"`), "", "scope_resources_invalid", "streams[0].resources"},
		{"7 number inside", one(`"name":"labels","resources":["a",1]`), "", "scope_resources_invalid",
			"streams[0].resources"},
		{"7 too many", one(`"name":"labels","resources":` + many(10_001, `"a"`)), "", "scope_resources_invalid",
			"streams[0].resources"},
		{"8 object", one(`"name":"labels","fields":{}`), "", "scope_fields_invalid", "streams[0].fields"},
		{"8 blank", one(`"name":"labels","fields":[" "]`), "", "scope_fields_invalid", "streams[0].fields"},
		{"8 too many", one(`"name":"labels","fields":` + many(513, `"a"`)), "", "scope_fields_invalid", "streams[0].fields"},
		{"7 before 8", one(`"name":"labels","fields":1,"resources":1`), "", "scope_resources_invalid",
			"streams[0].resources"},
		{"9 text", one(`"name":"labels","time_range":"2026"`), "", "scope_time_range_invalid", "streams[0].time_range"},
		{"9 blank bound", one(`"name":"labels","time_range":{"since":" "}`), "", "scope_time_range_invalid",
			"streams[0].time_range"},
		{"9 number", one(`"name":"labels","time_range":{"until":1767225600000}`), "", "scope_time_range_invalid",
			"streams[0].time_range"},
		{"9 unreadable", one(`"name":"labels","time_range":{"until":"2026-13-01"}`), "", "scope_time_range_invalid",
			"streams[0].time_range"},
		{"a field nobody declares", one(`"name":"messages","fields":["txet"]`), "", "scope_field_unknown",
			"streams[0].fields"},
		{"a member of the scope", `{"streams":[{"name":"labels"}],"fields":["text"]}`, "", "scope_member_unknown", "scope"},
		{"a member that is nearly one", one(`"name":"labels","feilds":["text"]`), "", "scope_member_unknown", "streams[0]"},
		{"a bound outside of its range", one(`"name":"messages","since":"2026"`), "", "scope_member_unknown", "streams[0]"},
		{"a member of the range", one(`"name":"messages","time_range":{"from":"2026"}`), "", "scope_time_range_invalid",
			"streams[0].time_range"},
		{"since after until", one(`"name":"messages","time_range":{"since":"2026-02","until":"2026-01"}`), "",
			"scope_time_range_invalid", "streams[0].time_range"},
		{"nothing between since and until", one(`"name":"messages","time_range":{"since":"2026-01","until":"2026-01-01"}`),
			"", "scope_time_range_invalid", "streams[0].time_range"},
		{"no time to hold a range against", one(`"name":"labels","time_range":{"since":"2026"}`), "",
			"scope_time_range_unsupported", "streams[0].time_range"},
		{"10 stream", one(`"name":"labels"`), granted, "scope_exceeds_grant", "streams[0]"},
		{"10 all resources", one(
			`"name":"messages","fields":["text"],"time_range":{"since":"2026-01-01","until":"2026-02-01"}`), granted,
			"scope_exceeds_grant", "streams[0].resources"},
		{"10 [] is all resources",
			one(`"name":"messages","resources":[],"fields":["text"],"time_range":{"since":"2026-01-01","until":"2026-02-01"}`),
			granted, "scope_exceeds_grant", "streams[0].resources"},
		{"10 resource", one(`"name":"messages","resources":["a","b"]`), granted, "scope_exceeds_grant",
			"streams[0].resources"},
		{"10 all fields", one(`"name":"messages","resources":["a"]`), granted, "scope_exceeds_grant", "streams[0].fields"},
		{"10 field", one(`"name":"messages","resources":["a"],"fields":["text","secret"]`), granted, "scope_exceeds_grant",
			"streams[0].fields"},
		{"10 since", one(`"name":"messages","resources":["a"],"fields":[],"time_range":{"since":"2025-12-31","until":"2026-02-01"}`), granted, "scope_exceeds_grant", "streams[0].time_range"},
		{"10 open end", one(`"name":"messages","resources":["a"],"fields":[],"time_range":{"since":"2026-01-01"}`), granted,
			"scope_exceeds_grant", "streams[0].time_range"},
		{"10 no range", one(`"name":"messages","resources":["a"],"fields":[]`), granted, "scope_exceeds_grant",
			"streams[0].time_range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := normalise(t, c.explicit, c.grant, "")
			var bad *scope.Error
			if !errors.As(err, &bad) {
				t.Fatalf("scope %s, error %v", got, err)
			}
			if bad.Code != c.code || bad.Member != c.member {
				t.Errorf("%s at %s, want %s at %s", bad.Code, bad.Member, c.code, c.member)
			}
		})
	}
}

func TestTooManyStreams(t *testing.T) {
	var streams []string
	var specs []string
	for i := range 257 {
		streams = append(streams, fmt.Sprintf(`{"name":"s%d"}`, i))
		if i < 256 {
			specs = append(specs, fmt.Sprintf(
				`{"name":"s%d","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}}`, i))
		}
	}
	m, err := abi.ReadManifest([]byte(
		`{"protocol_version":"0.1.0","connector_id":"c","version":"1","display_name":"C","streams":[` +
			strings.Join(specs, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = scope.Normalise(scope.Request{Manifest: m,
		Explicit: json.RawMessage(`{"streams":[` + strings.Join(streams, ",") + `]}`)})
	var bad *scope.Error
	if !errors.As(err, &bad) || bad.Code != "scope_too_large" {
		t.Errorf("error %v", err)
	}
}

// What is refused says what was most likely meant.
func TestSuggestions(t *testing.T) {
	for explicit, want := range map[string]string{
		one(`"name":"mesages"`):                    `scope member streams[0].name: a stream of the manifest, not "mesages"; did you mean messages? (scope_stream_unknown)`,
		one(`"name":"messages","fields":["txt"]`):  `scope member streams[0].fields: fields of messages, which has no "txt"; did you mean text? (scope_field_unknown)`,
		one(`"name":"labels","fields":["colour"]`): `scope member streams[0].fields: fields of labels, which has no "colour"; there are id, text (scope_field_unknown)`,
		one(`"name":"labels","time-range":{}`):     `scope member streams[0]: no member "time-range"; did you mean time_range? (scope_member_unknown)`,
	} {
		if _, err := normalise(t, explicit, "", ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", explicit, err, want)
		}
	}
}

func TestUnenforced(t *testing.T) {
	s, err := scope.Normalise(scope.Request{Manifest: manifest(t), Explicit: json.RawMessage(
		`{"streams":[{"name":"labels","time_range":{}},{"name":"messages","time_range":{}},{"name":"drafts"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"labels"}, scope.Unenforced(s, manifest(t))); diff != "" {
		t.Error(diff)
	}
}

// Checks 6 to 8 of RECORD.
func TestFilter(t *testing.T) {
	const (
		resources = `"name":"messages","resources":["red","[\"x\",\"y\"]","7"]`
		fields    = `"name":"messages","fields":["text"]`
		times     = `"name":"messages","time_range":{"since":"2026-01-01","until":"2026-02-01"}`
	)
	for _, c := range []struct{ name, scope, key, data, want string }{
		{"everything", `"name":"messages"`, "k", `{"anything":1}`, ""},
		{"listed key", resources, "red", `{"folder":"blue"}`, ""},
		{"listed compound key", resources, `["x","y"]`, `{}`, ""},
		{"listed field", resources, "k", `{"folder":"red"}`, ""},
		{"field spelled with escapes", resources, "k", `{"folder":"r\u0065d"}`, ""},
		{"member spelled with escapes", resources, "k", `{"f\u006flder":"red"}`, ""},
		{"number as text", resources, "k", `{"folder":7}`, ""},
		{"array as text", resources, "k", `{"folder":["x", "y"]}`, ""},
		{"array of something else", resources, "k", `{"folder":["x",1]}`, "record_outside_resources"},
		{"other field", resources, "k", `{"folder":"blue"}`, "record_outside_resources"},
		{"null field", resources, "k", `{"folder":null}`, "record_outside_resources"},
		{"missing field", resources, "k", `{"text":"red"}`, "record_outside_resources"},
		{"object", resources, "k", `{"folder":{"red":1}}`, "record_outside_resources"},
		{"delete by key", resources, "red", ``, ""},
		{"delete of something else", resources, "k", ``, "record_outside_resources"},

		{"granted and required fields", fields, "k", `{"text":1,"id":1,"folder":1,"day":1}`, ""},
		{"fewer fields", fields, "k", `{}`, ""},
		{"one more field", fields, "k", `{"text":1,"at":1}`, "record_fields_outside_scope"},
		{"inside a field anything goes", fields, "k", `{"text":{"at":1}}`, ""},
		{"delete has no fields", fields, "k", ``, ""},

		{"first moment", times, "k", `{"at":"2026-01-01T00:00:00Z"}`, ""},
		{"last moment", times, "k", `{"at":"2026-01-31T23:59:59.999999Z"}`, ""},
		{"with an offset", times, "k", `{"at":"2026-02-01T00:30:00+01:00"}`, ""},
		{"without an offset", times, "k", `{"at":"2026-01-31T23:59"}`, ""},
		{"a month", times, "k", `{"at":"2026-01"}`, ""},
		{"a year", times, "k", `{"at":"2026"}`, ""},
		{"milliseconds", times, "k", `{"at":1767225600000}`, ""},
		{"too early", times, "k", `{"at":"2025-12-31T23:59:59.999Z"}`, "record_outside_time_range"},
		{"until is not inside", times, "k", `{"at":"2026-02-01T00:00:00Z"}`, "record_outside_time_range"},
		{"too late, with an offset", times, "k", `{"at":"2026-01-31T23:59:59-01:00"}`, "record_outside_time_range"},
		{"milliseconds too early", times, "k", `{"at":1767225599999}`, "record_outside_time_range"},
		{"missing", times, "k", `{}`, "record_outside_time_range"},
		{"null", times, "k", `{"at":null}`, "record_outside_time_range"},
		{"empty", times, "k", `{"at":""}`, "record_outside_time_range"},
		{"unreadable", times, "k", `{"at":"soon"}`, "record_outside_time_range"},
		{"a boolean", times, "k", `{"at":true}`, "record_outside_time_range"},
		{"a day that does not exist", times, "k", `{"at":"2026-01-32"}`, "record_outside_time_range"},
		{"delete without data", times, "k", ``, ""},
		{"an open range still wants the field", `"name":"messages","time_range":{}`, "k", `{}`, "record_outside_time_range"},

		{"resources before fields", `"name":"messages","resources":["red"],"fields":["text"]`, "k", `{"x":1}`,
			"record_outside_resources"},
		{"fields before times", `"name":"messages","fields":["text"],"time_range":{}`, "k", `{"x":1}`,
			"record_fields_outside_scope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := manifest(t)
			s, err := scope.Normalise(scope.Request{Manifest: m, Explicit: json.RawMessage(one(c.scope))})
			if err != nil {
				t.Fatal(err)
			}
			record := &abi.RecordMessage{Key: []byte(c.key), Data: []byte(c.data), Delete: c.data == ""}
			if c.data != "" {
				var scan strictjson.Scanner
				if record.Members, err = scan.Object(record.Data); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if v := scope.NewFilter(s, m).Admit(record); v != nil {
				got = string(v.Subtype)
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The filter allocates nothing for a record that passes.
func TestFilterAllocations(t *testing.T) {
	m := manifest(t)
	s, err := scope.Normalise(scope.Request{Manifest: m, Explicit: json.RawMessage(one(
		`"name":"messages","resources":["red"],"fields":["text","at"],"time_range":{"since":"2026-01-01"}`))})
	if err != nil {
		t.Fatal(err)
	}
	f := scope.NewFilter(s, m)
	record := &abi.RecordMessage{Key: []byte("k"),
		Data: []byte(`{"id":1,"folder":"red","text":"x","at":"2026-01-02T00:00:00Z"}`)}
	var scan strictjson.Scanner
	if record.Members, err = scan.Object(record.Data); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if v := f.Admit(record); v != nil {
			t.Fatal(v)
		}
	}); n > 0 {
		t.Errorf("%v allocations per record", n)
	}
}

// TestFilterRemembers: what records before had at a place says nothing of another
// name there.
func TestFilterRemembers(t *testing.T) {
	m := manifest(t)
	s, err := scope.Normalise(scope.Request{Manifest: m,
		Explicit: json.RawMessage(one(`"name":"messages","fields":["text","at"]`))})
	if err != nil {
		t.Fatal(err)
	}
	f := scope.NewFilter(s, m)
	for _, r := range []struct {
		data  string
		fault string
	}{
		{`{"id":1,"folder":"red","text":"x"}`, ""}, {`{"text":"x","id":1,"folder":"red","at":"2026-01-02T00:00:00Z"}`, ""},
		{`{"id":1,"folder":"red","salary":1}`, "salary"}, {`{"id":1,"folder":"red","salary":1}`, "salary"},
		{`{"salary":1}`, "salary"}, {`{"id":1,"folder":"red","text":"x","at":null,"more":1}`, "more"},
		{`{"id":1,"folder":"red","text":"x"}`, ""},
	} {
		record := &abi.RecordMessage{Key: []byte("k"), Data: []byte(r.data)}
		var scan strictjson.Scanner
		if record.Members, err = scan.Object(record.Data); err != nil {
			t.Fatal(err)
		}
		v := f.Admit(record)
		if got := ""; v != nil {
			if got = v.Field; got != r.fault {
				t.Errorf("%s: %q; want %q", r.data, got, r.fault)
			}
		} else if r.fault != "" {
			t.Errorf("%s: admitted", r.data)
		}
	}
}
