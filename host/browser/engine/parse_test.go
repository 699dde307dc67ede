package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func parse(t *testing.T, request string) *engine.Request {
	t.Helper()
	r, refusal := engine.Parse([]byte(request), engine.DefaultSettings)
	if refusal != nil {
		t.Fatalf("%s\n%v", request, refusal)
	}
	return r
}

// TestRefused: every refusal has its code and names the field.
func TestRefused(t *testing.T) {
	const save = `"target":{"selector":{"name":"Save"}}`
	deep := `{"selector":{"name":"a","within":{"selector":{"name":"b","within":{"selector":{"name":"c","near":{"element_id":"el_1"}}}}}}}`
	for _, c := range []struct{ request, code, says string }{
		{``, "invalid_request", "one JSON object"},
		{`[]`, "invalid_request", "one JSON object"},
		{`{"verb":"click",`, "invalid_request", "one JSON object"},
		{`{}`, "invalid_request", "missing or invalid string argument: verb"},
		{`{"verb":1}`, "invalid_request", "missing or invalid string argument: verb"},
		{`{"verb":"eval"}`, "unknown_verb", "eval"},
		{`{"verb":"` + strings.Repeat("x", 129) + `"}`, "invalid_request", "verb"},
		// What a guest may not say of itself.
		{`{"verb":"click",` + save + `,"action_type":"local_state"}`, "invalid_request", "action_type"},
		{`{"verb":"click",` + save + `,"effect":null}`, "invalid_request", "effect"},
		// Booleans are never strings, and numbers never text.
		{`{"verb":"check",` + save + `,"checked":"true"}`, "invalid_request", "missing or invalid boolean argument: checked"},
		{`{"verb":"check",` + save + `}`, "invalid_request", "missing or invalid boolean argument: checked"},
		{`{"verb":"click",` + save + `,"rebind":"yes"}`, "invalid_request", "missing or invalid boolean argument: rebind"},
		{`{"verb":"adjust",` + save + `}`, "invalid_request", "missing or invalid number argument: value"},
		{`{"verb":"adjust",` + save + `,"value":"30"}`, "invalid_request", "missing or invalid number argument: value"},
		{`{"verb":"adjust",` + save + `,"value":1e999}`, "invalid_request", "number argument: value"},
		{`{"verb":"adjust",` + save + `,"value":3,"tolerance":-1}`, "invalid_request", "tolerance"},
		{`{"verb":"adjust",` + save + `,"value":3,"tolerance":2,"widen_tolerance_to":1}`, "invalid_request",
			"widen_tolerance_to"},
		{`{"verb":"adjust",` + save + `,"value":3,"modes":[]}`, "invalid_request", "modes"},
		{`{"verb":"adjust",` + save + `,"value":3,"modes":["semantic","semantic"]}`, "invalid_request", "modes"},
		{`{"verb":"click",` + save + `,"deadline_ms":"500"}`, "invalid_request", "number argument: deadline_ms"},
		{`{"verb":"click",` + save + `,"verify":[]}`, "invalid_request", "object argument: verify"},
		{`{"verb":"click",` + save + `,"verify":{"window_ms":true}}`, "invalid_request", "number argument: verify.window_ms"},
		{`{"verb":"click",` + save + `,"intent":"` + strings.Repeat("é", 201) + `"}`, "invalid_request", "intent"},
		{`{"verb":"click",` + save + `,"count":0}`, "invalid_request", "count"},
		{`{"verb":"click",` + save + `,"count":1.5}`, "invalid_request", "count"},
		{`{"verb":"click",` + save + `,"button":"back"}`, "invalid_request", "button"},
		{`{"verb":"click",` + save + `,"modifiers":["Hyper"]}`, "invalid_request", "modifiers"},
		{`{"verb":"click",` + save + `,"position":{"x":1.1}}`, "invalid_request", "position"},
		{`{"verb":"click",` + save + `,"on_dialog":"keep"}`, "invalid_request", "on_dialog"},
		{`{"verb":"click",` + save + `,"dialog_text":"Ann"}`, "invalid_request", "dialog_text"},
		{`{"verb":"click",` + save + `,"on_dialog":"accept","dialog_text":1}`, "invalid_request",
			"string argument: dialog_text"},
		{`{"verb":"click",` + save + `,"on_dialog":"accept","dialog_text":"sluice-sealed-v1-x"}`,
			"sealed_placement_denied", "dialog_text"},
		{`{"verb":"click",` + save + `,"count":2,"hold_ms":500}`, "invalid_request", "hold_ms"},
		{`{"verb":"click",` + save + `,"hold_ms":"long"}`, "invalid_request", "number argument: hold_ms"},
		{`{"verb":"select",` + save + `,"option":{"id":"a"},"options":[]}`, "invalid_request", "not both"},
		{`{"verb":"select",` + save + `,"options":{"id":"a"}}`, "invalid_request", "array argument: options"},
		{`{"verb":"select",` + save + `,"options":["a"]}`, "invalid_request", "object argument: options[0]"},
		{`{"verb":"select",` + save + `,"options":[{"id":"a"},{"id":"b","index":1}]}`, "invalid_request", "options[1].id"},
		{`{"verb":"select",` + save + `,"options":[` + strings.Repeat(`{"id":"a"},`, 100) + `{"id":"a"}]}`,
			"invalid_request", "at most 100"},
		// Targets.
		{`{"verb":"click"}`, "invalid_request", "object argument: target"},
		{`{"verb":"click","target":"el_1"}`, "invalid_request", "object argument: target"},
		{`{"verb":"click","target":{}}`, "INVALID_SELECTOR", "target"},
		{`{"verb":"click","target":{"selector":{}}}`, "INVALID_SELECTOR", "target.selector"},
		{`{"verb":"click","target":{"selector":{"name":" ","index":1,"contains":"x"}}}`,
			"INVALID_SELECTOR", "target.selector"},
		{`{"verb":"click","target":{"element_id":"el_1","selector":{"name":"x"}}}`, "invalid_request", "not both"},
		{`{"verb":"click","target":{"element_id":""}}`, "invalid_request", "target.element_id"},
		{`{"verb":"click","target":{"selector":{"name":"x","index":-1}}}`, "invalid_request", "target.selector.index"},
		{`{"verb":"click","target":{"selector":{"name":"x","within":{"selector":{}}}}}`, "INVALID_SELECTOR", "within"},
		{`{"verb":"click","target":` + deep + `}`, "invalid_request", "at most 3 deep"},
		{`{"verb":"click","target":{"selector":{"css":"` + strings.Repeat("a", 2049) + `"}}}`, "invalid_request",
			"target.selector.css"},
		// Deltas.
		{`{"verb":"click",` + save + `,"expect":{}}`, "invalid_request", "expect"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"text","all":[]}}`, "invalid_request", "exactly one"},
		{`{"verb":"click",` + save + `,"expect":{"all":[]}}`, "invalid_request", "expect.all"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"script","value":"1"}}`, "invalid_request", "expect.kind"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"text","value":"x"}}`, "invalid_request", "expect.op"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"text","op":"prefix","value":"x"}}`, "invalid_request", "expect.op"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"text","op":"matches","value":"(a"}}`, "invalid_request", "RE2"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"text","op":"matches","value":"((((a{99}){99}){99}){99})"}}`,
			"invalid_request", "RE2"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"text","op":"matches","value":"` + strings.Repeat("a", 513) + `"}}`,
			"invalid_request", "RE2"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"checked","equals":1}}`, "invalid_request",
			"boolean argument: expect.equals"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"text_value"}}`, "invalid_request", "expect.equals"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"value","equals":true}}`, "invalid_request", "expect.equals"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"selected","equals":{}}}`, "invalid_request", "expect.equals"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"count","op":"eq","value":-1}}`, "invalid_request", "expect.value"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"attribute","name":"value","op":"equals","value":"x"}}`,
			"invalid_request", "not read"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"attribute","name":"STYLE","op":"equals","value":"x"}}`,
			"invalid_request", "not read"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"attribute","name":"onclick","op":"equals","value":"x"}}`,
			"invalid_request", "not read"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"attribute","name":"a\"]","op":"equals","value":"x"}}`,
			"invalid_request", "expect.name"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"fingerprint"}}`, "invalid_request", "exactly one"},
		{`{"verb":"click",` + save + `,"expect":{"kind":"any_change","kinds":["pixels"]}}`,
			"invalid_request", "expect.kinds"},
		{`{"verb":"click",` + save + `,"expect":{"not":{"all":[{"any":[{"kind":"navigation"}]}]}}}`,
			"invalid_request", "at most 3 deep"},
		{`{"verb":"click",` + save + `,"expect":{"all":[` + strings.Repeat(`{"kind":"navigation"},`, 16) +
			`{"kind":"navigation"}]}}`, "invalid_request", "at most 16"},
		{`{"verb":"click",` + save + `,"expect":{"any":[` +
			strings.Repeat(`{"all":[{"kind":"navigation"},{"kind":"navigation"}]},`, 8) + `{"kind":"navigation"}]}}`,
			"invalid_request", "at most 16"},
		{`{"verb":"expect"}`, "invalid_request", "object argument: expect"},
		{`{"verb":"expect","expect":{"kind":"visible"}}`, "invalid_request", "expect.target"},
		{`{"verb":"navigate","url":"https://a.example","expect":{"all":[{"kind":"text","op":"equals","value":"x"}]}}`,
			"invalid_request", "expect.all[0].target"},
		// Verbs.
		{`{"verb":"navigate"}`, "invalid_request", "string argument: url"},
		{`{"verb":"navigate","url":"https://a.example","history":"back"}`, "invalid_request", "not both"},
		{`{"verb":"navigate","history":"up"}`, "invalid_request", "history"},
		{`{"verb":"type",` + save + `}`, "invalid_request", "object argument: value"},
		{`{"verb":"type",` + save + `,"value":"x"}`, "invalid_request", "object argument: value"},
		{`{"verb":"type",` + save + `,"value":{}}`, "invalid_request", "exactly one of plain and sealed"},
		{`{"verb":"type",` + save + `,"value":{"plain":"a","sealed":"b"}}`, "invalid_request", "exactly one"},
		{`{"verb":"type",` + save + `,"value":{"plain":true}}`, "invalid_request", "string argument: value.plain"},
		{`{"verb":"fill",` + save + `,"value":{"plain":"sluice-sealed-v1-aaaa"}}`, "sealed_placement_denied", "value.plain"},
		{`{"verb":"fill",` + save + `,"value":{"plain":"x sluice-sealed-v1-aaaa y"}}`,
			"sealed_placement_denied", "value.plain"},
		{`{"verb":"fill",` + save + `,"value":{"sealed":"sluice-sealed-v1-aaaa"},"clear":false}`, "invalid_request", "clear"},
		{`{"verb":"press","keys":""}`, "invalid_request", "string argument: keys"},
		{`{"verb":"press","keys":"Control+Wat"}`, "invalid_request", "unknown key"},
		{`{"verb":"press","keys":"Control+Control+A"}`, "invalid_request", "modifiers"},
		{`{"verb":"press","keys":"F12"}`, "invalid_request", "unknown key"},
		{`{"verb":"press","keys":"Control+Shift+i"}`, "invalid_request", "browser's own"},
		{`{"verb":"press","keys":"Shift+Control+I"}`, "invalid_request", "browser's own"},
		{`{"verb":"press","keys":"Tab Alt+F4"}`, "invalid_request", "browser's own"},
		{`{"verb":"press","keys":"Control+w"}`, "invalid_request", "browser's own"},
		{`{"verb":"press","keys":"Tab","count":101}`, "invalid_request", "count"},
		{`{"verb":"select",` + save + `}`, "invalid_request", "object argument: option"},
		{`{"verb":"select",` + save + `,"option":{"id":"a","index":1}}`, "invalid_request", "exactly one"},
		{`{"verb":"scroll"}`, "invalid_request", "exactly one of target and direction"},
		{`{"verb":"scroll",` + save + `,"direction":"down"}`, "invalid_request", "exactly one of target and direction"},
		{`{"verb":"upload",` + save + `,"files":[]}`, "invalid_request", "array argument: files"},
		{`{"verb":"upload",` + save + `,"files":["/a"]}`, "invalid_request", "object argument: files[0]"},
		{`{"verb":"upload",` + save + `,"files":[{"path":"a"}]}`, "invalid_request", "files[0].path"},
		{`{"verb":"upload",` + save + `,"files":[{"path":"/a","handle":1}]}`, "invalid_request", "exactly one"},
		{`{"verb":"upload",` + save + `,"files":[{"handle":1}]}`, "invalid_request", "files[0].name"},
		{`{"verb":"upload",` + save + `,"files":[{"handle":0,"name":"a"}]}`, "invalid_request", "files[0].handle"},
		{`{"verb":"upload",` + save + `,"files":[{"handle":1,"name":"../a"}]}`, "invalid_request", "files[0].name"},
		{`{"verb":"upload",` + save + `,"files":[{"handle":1,"name":".."}]}`, "invalid_request", "files[0].name"},
		{`{"verb":"wait"}`, "invalid_request", "string argument: for"},
		{`{"verb":"wait","for":"idle"}`, "INVALID_CONDITION", "idle"},
		{`{"verb":"wait","for":"visible"}`, "invalid_request", "object argument: target"},
		{`{"verb":"wait","for":"ui_change","expected_change":"pixels"}`, "invalid_request", "expected_change"},
		{`{"verb":"extract","items":[]}`, "invalid_request", "array argument: items"},
		{`{"verb":"extract","items":[{"name":"a"}]}`, "invalid_request", "items[0].take"},
		{`{"verb":"extract","items":[{"name":"a","take":"html"}]}`, "invalid_request", "items[0].take"},
		{`{"verb":"extract","items":[{"name":"a","take":"text"}]}`, "invalid_request", "items[0].target"},
		{`{"verb":"extract","items":[{"name":"a","take":"attribute",` + save + `}]}`, "invalid_request",
			"items[0].attribute"},
		{`{"verb":"extract","items":[{"name":"a","take":"attribute",` + save + `,"attribute":"onload"}]}`,
			"invalid_request", "not read"},
		{`{"verb":"extract","items":[{"name":"a","take":"links"},{"name":"a","take":"links"}]}`,
			"invalid_request", "items[1].name"},
		{`{"verb":"snapshot","include":["diagnostics"]}`, "invalid_request", "action_id"},
		{`{"verb":"snapshot","include":["html"]}`, "invalid_request", "include"},
		{`{"verb":"screenshot",` + save + `,"full_page":true}`, "invalid_request", "full_page"},
		{`{"verb":"cookies","hosts":["a.example"]}`, "invalid_request", "string argument: to"},
		{`{"verb":"cookies","to":"guest","hosts":["a.example"]}`, "invalid_request", "to"},
		{`{"verb":"cookies","to":"network"}`, "invalid_request", "array argument: hosts"},
		{`{"verb":"mark"}`, "invalid_request", "string argument: phase"},
		{`{"verb":"open","profile":""}`, "profile_name_invalid", "profile name required, must be [A-Za-z0-9_-]+"},
		{`{"verb":"open","profile":"a b"}`, "profile_name_invalid", "must be"},
		{`{"verb":"open","profile":"acme\n"}`, "profile_name_invalid", "must be"},
		{`{"verb":"open","profile":"../acme"}`, "profile_name_invalid", "must be"},
		{`{"verb":"open","profile":"` + strings.Repeat("a", 65) + `"}`, "profile_name_invalid", "must be"},
		{`{"verb":"open","profile":7}`, "invalid_request", "string argument: profile"},
		{`{"verb":"open","session":{"probe":{}}}`, "invalid_request", "session.probe.expect"},
		{`{"verb":"open","session":{"probe":{"expect":{"kind":"exists"}}}}`, "invalid_request",
			"session.probe.expect.target"},
		{`{"verb":"close","tab":7}`, "invalid_request", "tab"},
		{`{"verb":"close","tab":""}`, "invalid_request", "string argument: tab"},
	} {
		r, refusal := engine.Parse([]byte(c.request), engine.DefaultSettings)
		if refusal == nil {
			t.Errorf("%s\n taken as %+v", c.request, r)
			continue
		}
		if refusal.Code != c.code || !strings.Contains(refusal.Message, c.says) {
			t.Errorf("%s\n %s: %s", c.request, refusal.Code, refusal.Message)
		}
	}
	if _, refusal := engine.Parse(append([]byte(`{"verb":"close","x":"`), make([]byte, engine.MaxRequest)...),
		engine.DefaultSettings); refusal == nil || !strings.Contains(refusal.Message, "262144") {
		t.Errorf("a request of more than 256 KiB: %v", refusal)
	}
}

// TestDefaults: what a request does not say.
func TestDefaults(t *testing.T) {
	r := parse(t, `{"verb":"click","target":{"element_id":"el_1"},"unknown_member":{"action_type":1}}`)
	want := &engine.Request{
		Verb: engine.Click, Target: &engine.Target{ElementID: "el_1"}, Verify: engine.DefaultSettings,
		Deadline: 10 * time.Second, Actionable: 5 * time.Second, MaxRecovery: 3, MaxRetryDepth: 3,
		Click: engine.ClickArgs{Button: "left", Count: 1, Position: page.Point{X: 0.5, Y: 0.5}},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
	w := parse(t, `{"verb":"wait","for":"load"}`).Wait
	if want := (engine.WaitArgs{For: "load", Timeout: 10 * time.Second, Attempts: 1,
		Stability: 250 * time.Millisecond}); w != want {
		t.Errorf("wait %+v", w)
	}
	if s := parse(t, `{"verb":"snapshot"}`).Snapshot; s.Limit != 256 || s.LogLines != 200 ||
		!reflect.DeepEqual(s.Include, []string{"elements"}) {
		t.Errorf("snapshot %+v", s)
	}
	o := parse(t, `{"verb":"open","session":{"probe":{"expect":{"kind":"url","op":"prefix","value":"https://a.example/home"}}}}`).Open
	if !o.Persistent || o.Viewport != (page.Viewport{Width: 1280, Height: 720, Scale: 1}) ||
		o.Session.Timeout != 15*time.Second || o.Session.Owner != 10*time.Minute {
		t.Errorf("open %+v %+v", o, o.Session)
	}
	if a := parse(t, `{"verb":"type","target":{"element_id":"el_1"},"value":{"plain":""}}`).Type; a != (engine.TypeArgs{Clear: true}) {
		t.Errorf("type %+v", a)
	}
	if a := parse(t, `{"verb":"adjust","target":{"element_id":"el_1"},"value":3,"widen_tolerance_to":null}`).Adjust; a.MaxAttempts != 3 || len(a.Modes) != 3 || a.WidenTo != nil {
		t.Errorf("adjust %+v", a)
	}
	if a := parse(t, `{"verb":"scroll","direction":"down"}`).Scroll; a.Amount != 0.7 || a.Max != 10 {
		t.Errorf("scroll %+v", a)
	}
}

// TestClamped: numbers move to the nearest bound and are no reason to refuse.
func TestClamped(t *testing.T) {
	const low, high = -1e300, 1e300
	get := func(format string, f func(*engine.Request) any) (a, b any) {
		return f(parse(t, fmt.Sprintf(format, low))), f(parse(t, fmt.Sprintf(format, high)))
	}
	ms := time.Millisecond
	const click, wait = `{"verb":"click","target":{"element_id":"e"},%s}`, `{"verb":"wait","for":"load",%s}`
	for _, c := range []struct {
		verb, member string
		f            func(*engine.Request) any
		least, most  any
	}{
		{click, `"deadline_ms":%g`, func(r *engine.Request) any { return r.Deadline }, 500 * ms, 60_000 * ms},
		{click, `"actionable_timeout_ms":%g`, func(r *engine.Request) any { return r.Actionable }, 0 * ms, 30_000 * ms},
		{click, `"verify":{"window_ms":%g}`, func(r *engine.Request) any { return r.Verify.Window }, 500 * ms, 1500 * ms},
		{click, `"verify":{"stable_count":%g}`, func(r *engine.Request) any { return r.Verify.Count }, 2, 5},
		{wait, `"verify":{"stable_count":%g}`, func(r *engine.Request) any { return r.Verify.Count }, 1, 5},
		{click, `"verify":{"max_recheck":%g}`, func(r *engine.Request) any { return r.Verify.MaxRecheck }, 1, 10},
		{click, `"verify":{"interval_ms":%g}`, func(r *engine.Request) any { return r.Verify.Interval }, 100 * ms, 200 * ms},
		{click, `"verify":{"stale_ms":%g}`, func(r *engine.Request) any { return r.Verify.Stale }, 300 * ms, 800 * ms},
		{click, `"recovery":{"max_recovery_attempts":%g}`, func(r *engine.Request) any { return r.MaxRecovery }, 0, 3},
		{click, `"recovery":{"max_retry_depth":%g}`, func(r *engine.Request) any { return r.MaxRetryDepth }, 0, 3},
		{wait, `"timeout_ms":%g`, func(r *engine.Request) any { return r.Wait.Timeout }, 500 * ms, 60_000 * ms},
		{wait, `"retry":{"max_attempts":%g}`, func(r *engine.Request) any { return r.Wait.Attempts }, 1, 5},
		{wait, `"retry":{"backoff_ms":%g}`, func(r *engine.Request) any { return r.Wait.Backoff }, 0 * ms, 5000 * ms},
		{wait, `"stability_window_ms":%g`, func(r *engine.Request) any { return r.Wait.Stability }, 0 * ms, 2000 * ms},
		{`{"verb":"adjust","target":{"element_id":"e"},"value":1,%s}`, `"max_attempts":%g`,
			func(r *engine.Request) any { return r.Adjust.MaxAttempts }, 1, 4},
		{`{"verb":"scroll","direction":"up",%s}`, `"amount":%g`, func(r *engine.Request) any { return r.Scroll.Amount }, 0.1,
			1.0},
		{`{"verb":"snapshot",%s}`, `"limit":%g`, func(r *engine.Request) any { return r.Snapshot.Limit }, 1, 2000},
		{`{"verb":"snapshot",%s}`, `"log_lines":%g`, func(r *engine.Request) any { return r.Snapshot.LogLines }, 1, 1000},
		{`{"verb":"screenshot",%s}`, `"quality":%g`, func(r *engine.Request) any { return r.Screenshot.Quality }, 1, 100},
		{`{"verb":"open",%s}`, `"viewport":{"width":%g}`, func(r *engine.Request) any { return r.Open.Viewport.Width }, 240,
			3840},
		{`{"verb":"open",%s}`, `"session":{"timeout_seconds":%g}`,
			func(r *engine.Request) any { return r.Open.Session.Owner }, 10 * time.Second, time.Hour},
	} {
		least, most := get(fmt.Sprintf(c.verb, c.member), c.f)
		if least != c.least || most != c.most {
			t.Errorf("%s: %v to %v", c.member, least, most)
		}
	}
}

// TestDeadlines: for wait and expect the deadline is never below their time.
func TestDeadlines(t *testing.T) {
	for request, want := range map[string]time.Duration{
		`{"verb":"wait","for":"load","timeout_ms":30000}`:                                                                          30 * time.Second,
		`{"verb":"wait","for":"load","timeout_ms":30000,"deadline_ms":600}`:                                                        30 * time.Second,
		`{"verb":"wait","for":"load","timeout_ms":1000,"deadline_ms":4000}`:                                                        4 * time.Second,
		`{"verb":"wait","for":"load","timeout_ms":10000,"retry":{"max_attempts":3,"backoff_ms":1000}}`:                             32 * time.Second,
		`{"verb":"expect","expect":{"kind":"navigation"},"timeout_ms":20000}`:                                                      20 * time.Second,
		`{"verb":"expect","expect":{"kind":"navigation"}}`:                                                                         10 * time.Second,
		`{"verb":"type","target":{"element_id":"e"},"value":{"plain":"x"},"deadline_ms":700,"verify":{"window_ms":1500}}`:          700 * time.Millisecond,
		`{"verb":"wait","for":"load","timeout_ms":10000,"deadline_ms":700,"retry":{"max_attempts":3,"backoff_ms":1000},"tab":"t"}`: 10 * time.Second,
	} {
		if got := parse(t, request).Deadline; got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}

// TestConnectionSettings: the request's settings come before the connection's.
func TestConnectionSettings(t *testing.T) {
	base := engine.Settings{Window: 700 * time.Millisecond, Count: 3, MaxRecheck: 2,
		Interval: 150 * time.Millisecond, Stale: time.Hour}
	r, refusal := engine.Parse([]byte(`{"verb":"click","target":{"element_id":"e"},"verify":{"window_ms":1200}}`), base)
	if refusal != nil {
		t.Fatal(refusal)
	}
	want := engine.Settings{Window: 1200 * time.Millisecond, Count: 3, MaxRecheck: 2, Interval: 150 * time.Millisecond,
		Stale: 800 * time.Millisecond}
	if r.Verify != want {
		t.Errorf("got %+v", r.Verify)
	}
	if got := want.Info(); got != (engine.SettingsInfo{WindowMS: 1200, Count: 3, MaxRecheck: 2,
		IntervalMS: 150, StaleMS: 800}) {
		t.Errorf("echoed as %+v", got)
	}
}

// TestDeltaForms reads one of each kind.
func TestDeltaForms(t *testing.T) {
	r := parse(t, `{"verb":"click","target":{"selector":{"role":"button","name":"Save","within":{"selector":{"css":"#f"}},"index":2}},"expect":{"all":[
		{"kind":"text","op":"matches","value":"^Saved\\b","target":{"selector":{"role":"status"}}},
		{"any":[{"kind":"value","equals":3,"tolerance":0.5},{"kind":"value","equals":"x"},{"kind":"text_value","equals":""}]},
		{"not":{"kind":"visible"}},
		{"kind":"selected","equals":{"id":"a","label":"A"}},{"kind":"selected","equals":"a"},{"kind":"selected","equals":true},
		{"kind":"count","op":"gte","value":0},{"kind":"attribute","name":"Data-State","op":"contains","value":"on"},{"kind":"files","names":["a.pdf"]},
		{"kind":"navigation","same_document":true},{"kind":"fingerprint","changed_from":"fp_1"},{"kind":"any_change","kinds":["text_change"]},
		{"kind":"download","name_matches":"\\.csv$"}]}}`)
	of := r.Expect.Of
	if r.Expect.Kind != "all" || len(of) != 13 {
		t.Fatalf("%+v", r.Expect)
	}
	if !of[0].Compare("Saved at noon") || of[0].Compare("Not Saved") {
		t.Error("the expression is not applied")
	}
	if of[1].Of[0].Tolerance != 0.5 || *of[1].Of[1].String != "x" || *of[1].Of[2].String != "" {
		t.Errorf("%+v", of[1])
	}
	if !*of[2].Of[0].Bool || of[3].Option.Label != "A" || *of[4].String != "a" || !*of[5].Bool {
		t.Errorf("%+v", of[2:6])
	}
	if of[7].Attribute != "data-state" || !of[12].Named("report.csv") || of[12].Named("report.csv.exe") {
		t.Errorf("%+v", of[7:])
	}
	if s := r.Target.Selector; s.Within.Selector.CSS != "#f" || *s.Index != 2 || s.Exact != nil {
		t.Errorf("%+v", s)
	}
}

// TestCompare: texts are compared without regard to white space and case, addresses as
// they are.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		kind, op, want, have string
		holds                bool
	}{
		{"text", "equals", " all  done ", "ALL DONE", true},
		{"text", "contains", "done", "all Done.", true},
		{"text", "equals", "done", "all done", false},
		{"text", "matches", "done", "DONE", false},
		{"text", "matches", "(?i)done", "DONE", true},
		{"url", "prefix", "https://a.example/P", "https://a.example/p", false},
		{"url", "equals", "https://a.example/p", "https://a.example/p", true},
		{"text", "", "a", "a", false},
	} {
		p := engine.Predicate{Kind: c.kind, Op: c.op, Text: c.want}
		if got := p.Compare(c.have); got != c.holds {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// FuzzParse: no request makes Parse panic, and what it takes is within its bounds and
// read the same way twice.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"verb":"open","profile":"a","session":{"probe":{"expect":{"kind":"url","op":"prefix","value":"h"}}}}`,
		`{"verb":"click","target":{"selector":{"query":"save","near":{"element_id":"e"}}},"expect":{"not":{"kind":"count","op":"eq","value":1}}}`,
		`{"verb":"type","target":{"element_id":"e"},"value":{"plain":"x"}}`, `{"verb":"press","keys":"Control++ a"}`,
		`{"verb":"upload","target":{"element_id":"e"},"files":[{"handle":4294967296,"name":"a"}]}`,
		`{"verb":"wait","for":"ui_change","since_revision":9007199254740991}`,
		`{"verb":"extract","items":[{"name":"a","take":"table","columns":["x"]}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		r, refusal := engine.Parse(request, engine.DefaultSettings)
		if (r == nil) == (refusal == nil) {
			t.Fatal("neither or both")
		}
		if refusal != nil {
			return
		}
		if r.Verify != r.Verify.Clamped(r.Verb.IsAction()) || r.Deadline < 500*time.Millisecond ||
			r.Deadline > 10*time.Minute || r.MaxRecovery > 3 {
			t.Fatalf("%+v", r)
		}
		again, refusal := engine.Parse(request, engine.DefaultSettings)
		if refusal != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("%+v\n%+v", r, again)
		}
	})
}

// TestDeltaJSON: what is echoed of a delta reads as the same delta.
func TestDeltaJSON(t *testing.T) {
	for _, delta := range []string{
		`{"kind":"text","op":"matches","target":{"selector":{"role":"status","within":{"element_id":"el_1"}}},"value":"^a"}`,
		`{"all":[{"equals":3,"kind":"value","tolerance":0.5},{"not":{"equals":true,"kind":"visible"}},{"equals":"","kind":"text_value"}]}`,
		`{"any":[{"equals":{"id":"a","label":"A"},"kind":"selected"},{"kind":"count","op":"eq","value":0},{"kind":"files","names":[]}]}`,
		`{"any":[{"kind":"attribute","name":"href","op":"prefix","value":""},{"kind":"navigation","same_document":false},{"changed_from":"fp","kind":"fingerprint"}]}`,
		`{"any":[{"kind":"any_change","kinds":["text_change"]},{"kind":"download","name_matches":"a"},{"kind":"scrolled"},{"kind":"title","op":"equals","value":"x"}]}`,
	} {
		r := parse(t, `{"verb":"click","target":{"element_id":"e"},"expect":`+delta+`}`)
		got, err := json.Marshal(r.Expect)
		if err != nil || string(got) != delta {
			t.Errorf("%s\nis echoed as\n%s %v", delta, got, err)
		}
	}
}

// TestCSSAttributes: a selector asks for no attribute that may not be read, however it
// is written; others are left alone.
func TestCSSAttributes(t *testing.T) {
	for css, refused := range map[string]bool{
		`[value^="a"]`:                        true,
		`input[ VALUE *= a i]`:                true,
		`input[*|value]`:                      true,
		`input[|value]`:                       true,
		`input[ns|value|=a]`:                  true,
		`input[\76 alue^="a"]`:                true,
		`input[\000076alue]`:                  true,
		`input[\56 alue]`:                     true,
		`input[\v\61lue^="a"]`:                true,
		"input[\\76\r\nalue]":                 true,
		`input[/* x */value/**/^="a"]`:        true,
		`a[title="/*"][value^="x"][rel="*/"]`: true,
		`a[title="]"] [value]`:                true,
		`a[title='\']'][value]`:               true,
		"a[title=\"x\n][value]":               true,
		`:is(p, :not([value]))`:               true,
		`:has(> input[value="x"])`:            true,
		`input[value`:                         true,
		`[style]`:                             true,
		`[onclick]`:                           true,
		`[srcdoc*=a]`:                         true,
		`a[href^="/value"]`:                   false,
		`a[title="[value]"]`:                  false,
		`#value .value value`:                 false,
		`[data-value="1"]`:                    false,
		`[valuenow]`:                          false,
		`/* [value] */ p`:                     false,
		`#\[value`:                            false,
		`a[data-x|="value"]`:                  false,
		`[`:                                   false,
		`\`:                                   false,
		`"`:                                   false,
	} {
		raw, _ := json.Marshal(map[string]any{"verb": "click",
			"target": map[string]any{"selector": map[string]any{"css": css}}})
		_, refusal := engine.Parse(raw, engine.DefaultSettings)
		if (refusal != nil) != refused || refused && !strings.Contains(refusal.Message, "css") {
			t.Errorf("%s: %v", css, refusal)
		}
	}
}
