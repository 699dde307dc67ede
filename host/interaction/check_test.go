package interaction_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
)

// Types and choices.
func TestValues(t *testing.T) {
	field := func(typ string) run.Question {
		return run.Question{Kind: "clarification", Fields: []run.Field{{Name: "f", Shown: "f", Type: typ}}}
	}
	choice := func(enum string, shown ...string) run.Question {
		return run.Question{Kind: "clarification", Fields: []run.Field{{Name: "f", Shown: "f", Enum: shown}},
			RawSchema: json.RawMessage(`{"properties":{"f":{"enum":` + enum + `}}}`)}
	}
	approval := run.Question{Kind: "approval", Fields: []run.Field{
		{Name: "action", Shown: "f", Type: "string", Required: true, Enum: []string{"accept", "reject"}}}}
	for _, c := range []struct {
		name  string
		q     run.Question
		value string
		got   string // "" is refused
	}{
		{"string", field("string"), `"x"`, `"x"`},
		{"string is no number", field("string"), `1`, ``},
		{"integer", field("integer"), `12`, `12`},
		{"integer has no fraction", field("integer"), `1.5`, ``},
		{"number", field("number"), `1.5`, `1.5`},
		{"boolean", field("boolean"), `true`, `true`},
		{"array", field("array"), `[1]`, `[1]`},
		{"object", field("object"), `{"a":1}`, `{"a":1}`},
		{"object is no array", field("object"), `[]`, ``},
		{"duplicate names", field("object"), `{"a":1,"a":2}`, ``},
		{"no type is any", field(""), `[1]`, `[1]`},
		{"unknown type is any", field("colour"), `1`, `1`},
		{"choice", choice(`["a","b"]`, "a", "b"), `"b"`, `"b"`},
		{"no choice", choice(`["a","b"]`, "a", "b"), `"c"`, ``},
		{"number among choices", choice(`[1,2]`), `2`, `2`},
		{"a choice that was not shown", choice(`["a","b"]`, "a"), `"b"`, `"b"`},
		{"a choice as it was shown", choice(`[1,"see https://x.example/?t=1"]`, "see [REDACTED_URL]"), `"see [REDACTED_URL]"`,
			`"see https://x.example/?t=1"`},
		{"accept", approval, `"accept"`, `"accept"`},
		{"neither accept nor reject", approval, `"perhaps"`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := newMemory(runID)
			d := interaction.New(st)
			c.q.RunID, c.q.InteractionID = string(runID), "q"
			a := ask(t, d, st, c.q)
			done := make(chan error, 1)
			go func() {
				done <- d.Answer(t.Context(),
					host.Answer{RunID: runID, InteractionID: "q", Status: "success", Data: values("f", c.value)})
			}()
			if c.got == "" {
				if err := <-done; code(err) != "invalid_request" || detail(err, "field") != "f" {
					t.Errorf("%s was taken, or refused as something else: %v", c.value, err)
				}
				return
			}
			select {
			case err := <-done:
				t.Fatalf("%s was refused: %v", c.value, err)
			case got := <-a.got:
				st.commit(runID)
				d.Settled(got.RunID, got.InteractionID, nil)
				if string(got.Data[c.q.Fields[0].Name]) != c.got {
					t.Errorf("the run got %s", got.Data)
				}
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A decision comes with what it needs, and is one that was offered.
func TestDecisions(t *testing.T) {
	text := func(name string) run.Field { return run.Field{Name: name, Shown: name, Type: "string"} }
	offered := func(enum ...string) run.Question {
		return run.Question{RunID: string(runID), InteractionID: "q", Kind: "approval",
			Fields: []run.Field{{Name: "action", Shown: "action", Type: "string", Required: true, Enum: enum},
				text("comment"), text("edited")}}
	}
	all, two := offered("accept", "reject", "refine", "edit-accept"), offered("accept", "reject")
	for _, c := range []struct {
		q     run.Question
		data  map[string]json.RawMessage
		wrong string // the field; "" is taken
	}{
		{all, values("action", `"refine"`, "comment", `"shorter"`), ""},
		{all, values("action", `"refine"`), "comment"},
		{all, values("action", `"refine"`, "comment", `" "`), "comment"},
		{all, values("action", `"edit-accept"`, "edited", `"`+strings.Repeat(`\\n`, 8000)+`x"`), ""},
		{all, values("action", `"edit-accept"`, "edited", `" "`), "edited"},
		{all, values("action", `"edit-accept"`), "edited"},
		{all, values("action", `"accept"`, "edited", `"x"`), "edited"},
		{two, values("action", `"refine"`, "comment", `"shorter"`), "action"},
		{two, values("action", `"edit-accept"`, "edited", `"x"`), "action"},
	} {
		answered(t, c.q, c.data, c.wrong)
	}
}

// answered gives an answer that is taken, or refused for a field.
func answered(t *testing.T, q run.Question, data map[string]json.RawMessage, wrong string) {
	t.Helper()
	st := newMemory(runID)
	d := interaction.New(st)
	a := ask(t, d, st, q)
	done := make(chan error, 1)
	go func() {
		done <- d.Answer(t.Context(), host.Answer{RunID: runID, InteractionID: "q", Status: "success", Data: data})
	}()
	if wrong != "" {
		if err := <-done; code(err) != "invalid_request" || detail(err, "field") != wrong {
			t.Errorf("%.60s: %v", data, err)
		}
		return
	}
	select {
	case err := <-done:
		t.Errorf("%.60s: %v", data, err)
	case got := <-a.got:
		st.commit(runID)
		d.Settled(got.RunID, got.InteractionID, nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A field of a file takes a file, larger than other values, and nothing else does.
func TestFileAnswer(t *testing.T) {
	file := run.Field{Name: "f", Shown: "f", Type: "string", File: true}
	text := run.Field{Name: "t", Shown: "t", Type: "string"}
	large := string(strictjson.AppendQuote(nil,
		abi.AnswerFile{Name: "a.csv", Data: make([]byte, abi.MaxAnswerFile)}.String()))
	for _, c := range []struct {
		data  map[string]json.RawMessage
		wrong string
	}{
		{values("f", large), ""},
		{values("f", `"data:;base64,AAAA"`, "t", `"x"`), ""},
		{values("f", `"hello"`), "f"},
		{values("f", `{"name":"a"}`), "f"},
		{values("t", large), "t"},
		{values("f", large, "t", large), "data"},
	} {
		answered(t, run.Question{RunID: string(runID), InteractionID: "q", Kind: "clarification",
			Fields: []run.Field{file, text}}, c.data, c.wrong)
	}
}
