package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// mailManifest declares two streams, one with a compound key.
const mailManifest = `{"protocol_version":"0.1.0","connector_id":"https://example.org/mail","connector_key":"mail","version":"1.0.0","display_name":"Mail",
 "capabilities":{"refresh_policy":{"recommended_mode":"manual","rationale":"x","background_safe":true}},
 "streams":[
  {"name":"mails","semantics":"mutable_state","primary_key":["id"],"cursor_field":"seq","consent_time_field":"sent","coverage_strategy":"full_inventory",
   "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"subject":{"type":"string"},"seq":{"type":"integer"},"sent":{"type":"string","format":"date-time"},"to":{"type":"array"}}}},
  {"name":"pairs","semantics":"mutable_state","primary_key":["a","b"],"coverage_strategy":"full_inventory",
   "schema":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}}]}`

// connection puts one with that manifest into the store.
func connection(t *testing.T, id, mode string) store.ConnectionID {
	t.Helper()
	if _, err := abi.ReadManifest([]byte(mailManifest)); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := store.Connection{ID: store.ConnectionID(id), ConnectorID: "https://example.org/mail", Mode: mode, Enabled: true,
		Manifest: json.RawMessage(mailManifest), CreatedAt: now, UpdatedAt: now}
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

// A change is a record as a run stores it; without data it is a deletion.
type change struct {
	key, data string
	compound  bool
}

var runs int

// collect stores changes as one run does.
func collect(t *testing.T, id store.ConnectionID, stream store.Stream, changes ...change) {
	t.Helper()
	runs++
	row := store.Run{ID: store.RunID(fmt.Sprintf("run_%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), runs)),
		ConnectionID: id, Status: "active", StartedAt: time.Now(), TriggerKind: "manual"}
	lease, err := theStore().Acquire(t.Context(), row, shared.d.Host.ID, shared.d.Host.Epoch, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	batch := &store.Batch{Stream: stream}
	for i, c := range changes {
		op := store.Upsert
		if c.data == "" {
			op = store.Delete
		}
		batch.Append(store.Change{Op: op, Compound: c.compound, Key: []byte(c.key), Data: []byte(c.data),
			EmittedAt: int64(len(changes)-i) * 1e6})
	}
	now := time.Now()
	row.Status, row.FinishedAt = "succeeded", &now
	receipt, err := theStore().Submit(t.Context(),
		&store.Commit{Lease: lease, Batches: []*store.Batch{batch}, Run: &row, End: true,
			Events: []store.Event{{ID: "evt_0000000000000001", Type: "run.completed", OccurredAt: now, RunID: row.ID,
				ConnectionID: id, Data: json.RawMessage(`{}`)}}})
	if err == nil {
		_, err = receipt.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mail(n int) change {
	return change{key: fmt.Sprintf("m%02d", n),
		data: fmt.Sprintf(`{"id":"m%02d","subject":"=s%d","seq":%d,"sent":"2026-01-%02dT00:00:00Z","to":["a@x"],"extra":%d}`,
			n, n, n, n, n)}
}

func mails(from, to int) (out []change) {
	for n := from; n <= to; n++ {
		out = append(out, mail(n))
	}
	return out
}

func keys(a *answer) string {
	var out []string
	for i := range a.list("data") {
		out = append(out, fmt.Sprint(a.member("data", i, "key")))
	}
	return strings.Join(out, " ")
}

// Declared streams with their counters; others that hold records.
func TestStreams(t *testing.T) {
	c := served(t)
	id := connection(t, "streams", "live")
	collect(t, id, "mails", mails(1, 3)...)
	collect(t, id, "mails", change{key: "m02"})
	collect(t, id, "old", change{key: "x", data: `{}`})
	a := c.do("GET", "/v1/connections/streams/streams", nil).want(200)
	var got []string
	for i := range a.list("data") {
		got = append(got, fmt.Sprint(a.text("data", i, "stream"), a.number("data", i, "records"),
			a.number("data", i, "deleted"),
			a.number("data", i, "lastVersion"), a.member("data", i, "primaryKey"), a.member("data", i, "filterable")))
	}
	want := "mails2 1 4 [id] [id seq sent]|pairs0 0 0 [a b] [a b]|old1 0 1 [] []"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	c.do("GET", "/v1/connections/streams/streams/nothing/records", nil).want(404, "not_found")
	c.do("GET", "/v1/connections/streams/streams/old/records", nil).want(200)
}

// Each parameter does what it says, and what cannot be done is refused by
// name.
func TestRecordQuery(t *testing.T) {
	c := served(t)
	id := connection(t, "query", "live")
	collect(t, id, "mails", mails(1, 9)...)
	collect(t, id, "mails", change{key: "m04"}, change{key: "m07", data: `{"id":"m07","seq":70}`})
	at := "/v1/connections/query/streams/mails/records?"
	for q, want := range map[string]string{
		"":                                           "m01 m02 m03 m05 m06 m08 m09 m07",
		"order=-version&limit=3":                     "m07 m09 m08",
		"order=key":                                  "m01 m02 m03 m05 m06 m07 m08 m09",
		"order=-key&limit=2":                         "m09 m08",
		"order=time&limit=2":                         "m07 m09",
		"order=-time&limit=2":                        "m01 m02",
		"includeDeleted=true":                        "m01 m02 m03 m05 m06 m08 m09 m04 m07",
		"key=m02&key=m04&key=none":                   "m02",
		"key=m09&key=m01&order=-key":                 "m09 m01",
		"key=m04&includeDeleted=true":                "m04",
		"filter=seq:gt:3&filter=seq:lte:8":           "m05 m06 m08",
		"filter=seq:eq:70":                           "m07",
		"filter=seq:in:1,2,70":                       "m01 m02 m07",
		"filter=sent:exists:false":                   "m07",
		"filter=sent:gte:2026-01-08":                 "m08 m09",
		"filter=sent:eq:2026-01-08T01:00:00%2B01:00": "m08",
		"filter=id:ne:m01&limit=1":                   "m02",
		"from=2026-01-02T00:00:00Z&until=2026-01-05T00:00:00Z":   "m02 m03",
		"updatedUntil=2000-01-01T00:00:00Z":                      "",
		"updatedFrom=2000-01-01T00:00:00Z&order=version&limit=1": "m01",
		"key=m02&key=m03&filter=seq:gt:2":                        "m03",
	} {
		if got := keys(c.do("GET", at+q, nil).want(200)); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	for q, code := range map[string]string{
		"filter=subject:eq:x": "unsupported_filter", "filter=:eq:x": "unsupported_filter",
		"filter=seq:like:1": "validation_error", "filter=seq": "unsupported_filter",
		"filter=seq:exists:1": "validation_error", "filter=seq:in:" + strings.Repeat("1,", 101): "validation_error",
		"limit=0": "validation_error", "limit=1001": "validation_error", "order=size": "validation_error",
		"from=yesterday": "validation_error", "includeDeleted=1": "validation_error", "changesSince=x": "validation_error",
		"cursor=x": "invalid_cursor", "changesSince=&filter=seq:eq:1": "validation_error",
		"changesSince=&order=key": "validation_error", "changesSince=&until=2026-01-01T00:00:00Z": "validation_error",
		"key=": "validation_error", "key=%FF": "validation_error", "key=" + strings.Repeat("k", 2000): "validation_error",
		strings.Repeat("key=k&", 101): "validation_error", strings.Repeat("filter=seq:eq:1&", 21): "validation_error",
		"changesSince=99999": "validation_error",
	} {
		status := 400
		if q == "changesSince=99999" { // a version of no era
			status, code = 410, "cursor_expired"
		}
		a := c.do("GET", at+q, nil).want(status, code)
		if code == "unsupported_filter" && fmt.Sprint(a.member("details", "filterable")) != "[id seq sent]" {
			t.Errorf("%s: %s", q, a.body)
		}
	}
	c.do("GET", "/v1/connections/query/streams/pairs/records?from=2026-01-01T00:00:00Z", nil).want(400,
		"unsupported_filter")
}

// Pages neither repeat nor skip, in every order; a cursor is good for its own
// query only.
func TestRecordPages(t *testing.T) {
	c := served(t)
	id := connection(t, "pages", "live")
	collect(t, id, "mails", mails(1, 25)...)
	for _, q := range []string{"", "order=-version", "order=key", "order=-key", "order=time", "order=-time",
		"filter=seq:gt:0", "changesSince=",
		"key=m01&key=m02&key=m03&key=m04&key=m05&key=m06&key=m07&key=m08"} {
		at := "/v1/connections/pages/streams/mails/records?limit=7&" + q
		seen, cursor := []string{}, ""
		for {
			a := c.do("GET", at+cursor, nil).want(200)
			seen = append(seen, strings.Fields(keys(a))...)
			next := a.text("nextCursor")
			if next == "" {
				break
			}
			cursor = "&cursor=" + next
			c.do("GET", at+"&fields=id"+cursor, nil).want(400, "invalid_cursor")
		}
		want := 25
		if strings.HasPrefix(q, "key=") {
			want = 8
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(seen)))
		if len(seen) != want || len(distinct) != want {
			t.Errorf("%q: %v", q, seen)
		}
	}
}

// Reading changes to the end and applying them reproduces the stream,
// whatever is written between the pages; a point of an erased connection has
// expired.
func TestChanges(t *testing.T) {
	c := served(t)
	id := connection(t, "changes", "live")
	collect(t, id, "mails", mails(1, 12)...)
	at := "/v1/connections/changes/streams/mails/records?limit=5&changesSince="
	have, since := map[string]string{}, ""
	for round := range 8 {
		a := c.do("GET", at+since, nil).want(200)
		for i := range a.list("data") {
			k := a.text("data", i, "key")
			if deleted, _ := a.member("data", i, "deleted").(bool); deleted {
				if a.member("data", i, "data") != nil || a.text("data", i, "deletedAt") == "" {
					t.Errorf("a tombstone: %s", a.body)
				}
				delete(have, k)
			} else {
				have[k] = string(must(json.Marshal(a.member("data", i, "data"))))
			}
		}
		since = a.text("nextChangesSince")
		switch round {
		case 0:
			collect(t, id, "mails", change{key: "m01"}, change{key: "m09", data: `{"id":"m09","seq":90}`})
		case 1:
			collect(t, id, "mails", change{key: "m03"}, mail(1))
		}
	}
	want := map[string]string{}
	a := c.do("GET", "/v1/connections/changes/streams/mails/records?limit=1000", nil).want(200)
	for i := range a.list("data") {
		want[a.text("data", i, "key")] = string(must(json.Marshal(a.member("data", i, "data"))))
	}
	if len(want) != 11 || fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("have %v, want %v", have, want)
	}
	if a := c.do("GET", at+since, nil).want(200); len(a.list("data")) != 0 || a.text("nextChangesSince") != since {
		t.Errorf("%s", a.body)
	}
	if err := theStore().DeleteConnection(t.Context(), id, true); err != nil {
		t.Fatal(err)
	}
	connection(t, "changes", "live")
	collect(t, id, "mails", mails(1, 20)...)
	c.do("GET", at+since, nil).want(410, "cursor_expired")
}

// Changes that happen while a list is paged are not lost to who goes on with
// nextChangesSince.
func TestChangesWhilePaging(t *testing.T) {
	c := served(t)
	id := connection(t, "paging", "live")
	collect(t, id, "mails", mails(1, 6)...)
	at := "/v1/connections/paging/streams/mails/records?"
	a := c.do("GET", at+"order=key&limit=3", nil).want(200)
	collect(t, id, "mails", change{key: "m01", data: `{"id":"m01"}`})
	a = c.do("GET", at+"order=key&limit=3&cursor="+a.text("nextCursor"), nil).want(200)
	a = c.do("GET", at+"changesSince="+a.text("nextChangesSince"), nil).want(200)
	if got := keys(a); got != "m01" {
		t.Errorf("changed: %s", got)
	}
}

// One record by its key, whatever is in it; a compound key in any spelling of its
// array.
func TestRecordByKey(t *testing.T) {
	c := served(t)
	id := connection(t, "bykey", "live")
	odd := []string{"a/b", "a:b", "ü %2F", `["x"]`, ".", "a b?c#d", `"`, "x:pause"}
	var changes []change
	for _, k := range odd {
		changes = append(changes, change{key: k, data: `{"id":` + string(must(json.Marshal(k))) + `}`})
	}
	collect(t, id, "mails", changes...)
	collect(t, id, "pairs", change{key: `["a/b","c"]`, data: `{"a":"a/b","b":"c"}`, compound: true})
	collect(t, id, "mails", change{key: "a/b"})
	at := "/v1/connections/bykey/streams/mails/records/"
	for _, k := range odd {
		escaped := strings.ReplaceAll(url.PathEscape(k), ":", "%3A")
		if k == "." {
			escaped = "%2E"
		}
		a := c.do("GET", at+escaped, nil).want(200)
		if a.text("key") != k || a.member("deleted") != nil && k != "a/b" {
			t.Errorf("%q: %s", k, a.body)
		}
	}
	if a := c.do("GET", at+"a%2Fb", nil).want(200); a.member("deleted") != true || a.member("data") != nil {
		t.Errorf("a tombstone: %s", a.body)
	}
	for _, k := range []string{`["a/b","c"]`, `[ "a\/b", "c" ]`, `["a/b","\u0063"]`} {
		a := c.do("GET", "/v1/connections/bykey/streams/pairs/records/"+url.PathEscape(k), nil).want(200)
		if fmt.Sprint(a.member("key")) != "[a/b c]" {
			t.Errorf("%s: %s", k, a.body)
		}
	}
	if a := c.do("GET", "/v1/connections/bykey/streams/pairs/records?key="+url.QueryEscape(`["a/b", "c"]`),
		nil).want(200); len(a.list("data")) != 1 {
		t.Errorf("%s", a.body)
	}
	for _, path := range []string{"none", "a/b", "%00", "a%252Fb"} {
		c.do("GET", at+path, nil).want(404, "not_found")
	}
}

// Fields leaves the others out, and never the key fields.
func TestFields(t *testing.T) {
	c := served(t)
	id := connection(t, "fields", "live")
	collect(t, id, "mails", mail(1))
	a := c.do("GET", "/v1/connections/fields/streams/mails/records?fields=seq,none", nil).want(200)
	if got := string(must(json.Marshal(a.member("data", 0, "data")))); got != `{"id":"m01","seq":1}` {
		t.Error(got)
	}
}

// Records of a connection that a key may not know of are nowhere.
func TestRecordsOfOthers(t *testing.T) {
	c := served(t)
	id := connection(t, "mine", "live")
	connection(t, "theirs", "test")
	collect(t, id, "mails", mail(1))
	other := c.as(key(t, access.NewKey{Scopes: all, ConnectionIDs: []store.ConnectionID{"theirs"}}))
	for _, path := range []string{"", "/mails/records", "/mails/records/m01", "/mails/export"} {
		a, b := other.do("GET", "/v1/connections/mine/streams"+path, nil).want(404),
			other.do("GET", "/v1/connections/none/streams"+path, nil).want(404)
		if a.text("message") != b.text("message") {
			t.Errorf("%s: %s, %s", path, a.body, b.body)
		}
		c.as(key(t, access.NewKey{Scopes: all, Mode: access.Test})).do("GET", "/v1/connections/mine/streams"+path,
			nil).want(403, "forbidden")
	}
	other.do("GET", "/v1/connections/theirs/streams/mails/records", nil).want(200)
}
