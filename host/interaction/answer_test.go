package interaction_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

const runID store.RunID = "run_1"

// An answer reaches the asker under the connector's own names, and
// the memory it came in is wiped.
func TestAnswer(t *testing.T) {
	st := newMemory(runID)
	d := interaction.New(st)
	a := ask(t, d, st, otp(runID, "login"))
	value := json.RawMessage(`"424242"`)
	done := make(chan error, 1)
	go func() {
		done <- d.Answer(t.Context(),
			host.Answer{RunID: runID, InteractionID: "login", Status: "success",
				Data: map[string]json.RawMessage{"field_1": value}, By: "key:k1"})
	}()
	got := a.take()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if string(got.Data["the code"]) != `"424242"` || len(got.Data) != 1 || got.By != "key:k1" || got.Status != "success" ||
		got.InteractionID != "login" {
		t.Errorf("the run got %+v", got)
	}
	if strings.Trim(string(value), "\x00") != "" {
		t.Errorf("left in the request: %q", value)
	}
	if n := d.Waiting(); n != 0 {
		t.Errorf("%d questions are open", n)
	}
}

// The checks come in their order, each with its code, and a refusal
// leaves the question open.
func TestChecksInOrder(t *testing.T) {
	st := newMemory(runID, "run_idle")
	st.runs["run_over"] = store.Run{ID: "run_over", Status: "failed"}
	d := interaction.New(st)
	first := ask(t, d, st, otp(runID, "login"))
	go func() { first.take() }()
	if err := d.Answer(t.Context(),
		host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)}); err != nil {
		t.Fatal(err)
	}
	second := ask(t, d, st, otp(runID, "login#2"))
	for _, c := range []struct {
		name   string
		run    store.RunID
		id     string
		status string
		data   map[string]json.RawMessage
		code   string
		detail string
		want   any
	}{
		{"1 before 2", runID, " \t", "timeout", nil, "invalid_request", "field", "interactionId"},
		{"1: too long an id", runID, strings.Repeat("x", 401), "success", nil, "invalid_request", "field", "interactionId"},
		{"1: too much data before 2", runID, "login#2", "timeout", values("field_1", `"`+strings.Repeat("x", 8<<17)+`"`),
			"invalid_request", "field", "data"},
		{"2: an owner sends no timeout, before 3", "run_none", "login#2", "timeout", nil, "invalid_status", "", nil},
		{"3", "run_none", "login#2", "success", nil, "not_found", "", nil},
		{"4", "run_over", "login", "success", nil, "no_pending_interaction", "outcome", "never_asked"},
		{"5 before 7", runID, "login", "success", nil, "conflict", "", nil},
		{"6", "run_idle", "login", "success", nil, "no_pending_interaction", "", nil},
		{"7 before 8", runID, "other", "success", nil, "interaction_id_mismatch", "currentInteractionId", "login#2"},
		{"8: required", runID, "login#2", "success", nil, "invalid_request", "field", "field_1"},
		{"8: null is no value", runID, "login#2", "success", values("field_1", `null`), "invalid_request",
			"field", "field_1"},
		{"8: type", runID, "login#2", "success", values("field_1", `1`), "invalid_request", "field", "field_1"},
		{"8: the connector's own name", runID, "login#2", "success", values("field_1", `"1"`, "the code", `"1"`),
			"invalid_request", "field", "data"},
		{"8: no JSON", runID, "login#2", "success", values("field_1", `"1`), "invalid_request", "field", "field_1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := d.Answer(t.Context(), host.Answer{RunID: c.run, InteractionID: c.id, Status: c.status, Data: c.data})
			if code(err) != c.code {
				t.Fatalf("%v, want %s", err, c.code)
			}
			if c.detail != "" && detail(err, c.detail) != c.want {
				t.Errorf("details.%s is %v, want %v", c.detail, detail(err, c.detail), c.want)
			}
			if len(c.data) > 0 {
				t.Errorf("left in the request: %v", c.data)
			}
		})
	}
	d.AllowTimeOuts("run_idle")
	if err := d.Answer(t.Context(),
		host.Answer{RunID: "run_idle", InteractionID: "login", Status: "timeout"}); code(err) != "no_pending_interaction" {
		t.Errorf("%v: its owner may let questions time out", err)
	}
	if d.Waiting() != 1 {
		t.Error("a refusal closed the question")
	}
	go func() { second.take() }()
	if err := d.Answer(t.Context(), host.Answer{RunID: runID, InteractionID: "login#2", Status: "cancelled"}); err != nil {
		t.Error(err)
	}
}

// 64 KiB, 32 fields, 8 KiB per value; each limit itself is allowed.
func TestLimits(t *testing.T) {
	q := run.Question{RunID: string(runID), ConnectionID: "c", InteractionID: "q", Kind: "clarification"}
	data := map[string]json.RawMessage{}
	for i := range 32 {
		name := string(rune('a' + i%26))
		if i >= 26 {
			name += "2"
		}
		q.Fields = append(q.Fields, run.Field{Name: name, Shown: name})
		data[name] = json.RawMessage(`"` + strings.Repeat("x", 1900) + `"`)
	}
	data["a"] = json.RawMessage(`"` + strings.Repeat("x", 8<<10-2) + `"`)
	data["b"] = json.RawMessage(`"` + strings.Repeat("x", 64<<10-8<<10-30*1902-(26+2*6)-2) + `"`)
	total := 0
	for k, v := range data {
		total += len(k) + len(v)
	}
	if total > 64<<10 {
		t.Fatalf("the fixture has %d bytes", total)
	}
	st := newMemory(runID)
	d := interaction.New(st)
	a := ask(t, d, st, q)
	over := map[string]json.RawMessage{"a": json.RawMessage(strings.Repeat("1", 8<<10+1))}
	if err := d.Answer(t.Context(),
		host.Answer{RunID: runID, InteractionID: "q", Status: "success", Data: over}); code(err) != "invalid_request" {
		t.Errorf("a value of 8 KiB and a byte: %v", err)
	}
	many := map[string]json.RawMessage{}
	for i := range 33 {
		many[strings.Repeat("n", i+1)] = json.RawMessage("1")
	}
	if err := d.Answer(t.Context(),
		host.Answer{RunID: runID, InteractionID: "q", Status: "success", Data: many}); code(err) != "invalid_request" {
		t.Errorf("33 fields: %v", err)
	}
	large := map[string]json.RawMessage{}
	for i := range 9 {
		large[q.Fields[i].Shown] = json.RawMessage(`"` + strings.Repeat("x", 8<<10-2) + `"`)
	}
	if err := d.Answer(t.Context(),
		host.Answer{RunID: runID, InteractionID: "q", Status: "success", Data: large}); code(err) != "invalid_request" {
		t.Errorf("72 KiB: %v", err)
	}
	go func() { a.take() }()
	if err := d.Answer(t.Context(),
		host.Answer{RunID: runID, InteractionID: "q", Status: "success", Data: data}); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

// Who saw the event of a question may answer it before the run has
// laid it at the broker.
func TestQuestionOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(runID)
		d := interaction.New(st)
		q := otp(runID, "login")
		st.commit(runID, store.Interaction{ID: q.InteractionID, RunID: runID}) // durable, and not asked yet
		done := make(chan error, 1)
		go func() {
			done <- d.Answer(t.Context(),
				host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)})
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("did not wait for the question: %v", err)
		default:
		}
		a := ask(t, d, st, q)
		a.take()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A question that the store has and nobody asks any more is not waited for longer than it is
// there. To one whose run does not get to ask it an answer is to be given again.
func TestQuestionOnItsWayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(runID)
		d := interaction.New(st)
		for want, gone := range map[string]func(){"no_pending_interaction": func() { st.commit(runID) },
			"unavailable": func() { /* never: the bound ends it */ }} {
			st.commit(runID, store.Interaction{ID: "login", RunID: runID})
			done := make(chan error, 1)
			go func() {
				done <- d.Answer(t.Context(),
					host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)})
			}()
			synctest.Wait()
			gone()
			if err := <-done; code(err) != want {
				t.Error(err)
			}
		}
	})
}

// A second answer waits for the fate of the first: it is a conflict only
// if that one was the end of the question.
func TestSecondAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*asker)
		code string
	}{
		"the first won":  {func(a *asker) { a.take() }, "conflict"},
		"the first lost": {func(a *asker) { a.close() }, "no_pending_interaction"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newMemory(runID)
				d := interaction.New(st)
				a := ask(t, d, st, otp(runID, "login"))
				answers := make(chan error, 2)
				for range 2 {
					go func() {
						answers <- d.Answer(t.Context(),
							host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)})
					}()
				}
				synctest.Wait()
				if len(answers) > 0 {
					t.Fatalf("answered before the end of the question is durable: %v", <-answers)
				}
				c.end(a)
				codes := []string{code(<-answers), code(<-answers)}
				if codes[0] != c.code && codes[1] != c.code {
					t.Errorf("the answers got %q, one of them should be %s", codes, c.code)
				}
			})
		})
	}
}

// An answer that was given up on does not hang, and neither does one whose run
// was forgotten.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(runID)
		d := interaction.New(st)
		a := ask(t, d, st, otp(runID, "login"))
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 2)
		go func() {
			answers <- d.Answer(ctx,
				host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)})
		}()
		synctest.Wait()
		go func() {
			answers <- d.Answer(t.Context(),
				host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)})
		}()
		synctest.Wait()
		cancel()
		if err := <-answers; err != context.Canceled {
			t.Error(err)
		}
		st.commit(runID)
		d.Forget(runID)
		if err := <-answers; code(err) != "no_pending_interaction" {
			t.Error(err)
		}
		late := <-a.got
		d.Settled(late.RunID, late.InteractionID, nil) // changes nothing
		if d.Waiting() != 0 {
			t.Error("a question of a forgotten run is open")
		}
	})
}

// A run that took an answer, and was put down before that was durable, asks again: the answer is
// its answer then. Once the broker is closed nobody waits for that.
func TestAskedAgain(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := newMemory(runID)
			d := interaction.New(st)
			first := ask(t, d, st, otp(runID, "login"))
			answer := make(chan error, 1)
			go func() {
				answer <- d.Answer(t.Context(),
					host.Answer{RunID: runID, InteractionID: "login", Status: "success", Data: values("field_1", `"1"`)})
			}()
			<-first.got
			d.Forget(runID)
			synctest.Wait()
			if closed {
				d.Close()
				if err := <-answer; code(err) != "unavailable" {
					t.Errorf("an answer when the host stops: %v", err)
				}
				return
			}
			ask(t, d, st, otp(runID, "login")).take()
			if err := <-answer; err != nil {
				t.Errorf("the answer to a question that is asked again was refused: %v", err)
			}
		})
	}
}

// An answer to a question that a watcher sees already, while the one before it, whose time
// is over, still lies at the broker, waits for its question.
func TestAnswerBeforeTheDeskKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(runID)
		d := interaction.New(st)
		first := ask(t, d, st, otp(runID, "login"))
		synctest.Wait()
		st.commit(runID, store.Interaction{ID: "login#2", RunID: runID, Message: "Code?"})
		answer := make(chan error, 1)
		go func() {
			answer <- d.Answer(t.Context(),
				host.Answer{RunID: runID, InteractionID: "login#2", Status: "success", Data: values("field_1", `"1"`)})
		}()
		synctest.Wait()
		first.cancel()
		<-first.got
		second := ask(t, d, st, otp(runID, "login#2"))
		go second.take()
		if err := <-answer; err != nil {
			t.Errorf("the answer to the question that is open was refused: %v", err)
			second.close()
		}
	})
}
