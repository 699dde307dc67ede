package corpus

import "strings"

// texts are JSON that parsers disagree about, sent as a PROGRESS call.
func texts() []Case {
	var cases []Case
	for _, t := range hostileTexts() {
		cases = append(cases, Case{
			Name: "json-" + t.name, Group: GroupJSON, Rule: "strict JSON", Want: Violation, Subtype: t.subtype,
			Wasm: connector("", func(c *Connector) Code { return c.Session(c.Send("progress", []byte(t.text))) }),
		})
	}
	deepest := Case{Name: "json-depth-64", Group: GroupJSON, Rule: "JSON depth", Want: Succeeded,
		Wasm: connector("", func(c *Connector) Code {
			return c.Session(c.Send("progress", []byte(`{"message":"x","extra":`+nestedArrays(63)+`}`)))
		})}
	return append(cases, deepest)
}

type hostileText struct{ name, text, subtype string }

func hostileTexts() []hostileText {
	const (
		invalid = "frame_invalid_json"
		utf8    = "frame_invalid_utf8"
		deep    = "frame_too_deep"
		other   = "frame_not_object"
	)
	return []hostileText{
		{"empty", "", invalid},
		{"blank", " \n", invalid},
		{"array", `[{"message":"x"}]`, other},
		{"null", `null`, other},
		{"string", `"message"`, other},
		{"depth-65", `{"message":"x","extra":` + nestedArrays(64) + `}`, deep},
		{"depth-10000", `{"message":"x","extra":` + nestedArrays(10_000) + `}`, deep},
		{"depth-objects", strings.Repeat(`{"a":`, 5_000) + `1` + strings.Repeat(`}`, 5_000), deep},
		{"brackets-64k", strings.Repeat("[", 64<<10), invalid},
		{"duplicate", `{"message":"x","message":"y"}`, invalid},
		{"duplicate-escaped", `{"message":"x","mess\u0061ge":"y"}`, invalid},
		{"duplicate-nested", `{"message":"x","extra":[{"a":1,"b":{},"a":1}]}`, invalid},
		{"duplicate-10000", `{"message":"x"` + strings.Repeat(`,"a":1`, 10_000) + `}`, invalid},
		{"utf8-overlong", "{\"message\":\"\xc0\xaf\"}", utf8},
		{"utf8-surrogate", "{\"message\":\"\xed\xa0\x80\"}", utf8},
		{"utf8-cut", "{\"message\":\"\xe2\x82\"}", utf8},
		{"utf8-in-name", "{\"message\":\"x\",\"\xff\":1}", utf8},
		{"utf8-after-the-end", "{\"message\":\"x\"}\xff", utf8},
		{"bom", "\ufeff{\"message\":\"x\"}", invalid},
		{"surrogate-high", `{"message":"\ud800"}`, invalid},
		{"surrogate-low", `{"message":"\udc00x"}`, invalid},
		{"surrogate-swapped", `{"message":"\udc00\ud800"}`, invalid},
		{"nul", "{\"message\":\"a\x00b\"}", invalid},
		{"nul-escaped", `{"message":"a\u0000b"}`, invalid},
		{"nul-after-the-end", "{\"message\":\"x\"}\x00", invalid},
		{"control", "{\"message\":\"a\tb\"}", invalid},
		{"trailing-object", `{"message":"x"}{"message":"y"}`, invalid},
		{"trailing-comma", `{"message":"x",}`, invalid},
		{"comment", `{"message":"x"/* y */}`, invalid},
		{"single-quotes", `{'message':'x'}`, invalid},
		{"number-nan", `{"message":"x","count":NaN}`, invalid},
		{"number-plus", `{"message":"x","count":+1}`, invalid},
		{"number-octal", `{"message":"x","count":01}`, invalid},
		{"number-point", `{"message":"x","count":1.}`, invalid},
		{"number-huge", `{"message":"x","count":1e400}`, "progress_invalid_count"},
		{"number-negative", `{"message":"x","count":-1}`, "progress_invalid_count"},
		{"case-folded", `{"Message":"x"}`, "progress_invalid_message"},
		{"name-with-blank", `{"message ":"x"}`, "progress_invalid_message"},
		{"message-number", `{"message":1}`, "progress_invalid_message"},
		{"message-9k", `{"message":"` + strings.Repeat("a", 9<<10) + `"}`, "field_limit_exceeded"},
		{"stream-unknown", `{"message":"x","stream":"../items"}`, "progress_for_undeclared_stream"},
	}
}
