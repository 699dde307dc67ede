package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
)

// scripted answers questions from --answer, in order; what it has no answer for
// goes to next, or is cancelled.
type scripted struct {
	mu      sync.Mutex
	answers []scriptedAnswer
	next    run.Owner
	warn    func(format string, args ...any)
}

type scriptedAnswer struct {
	kind  string
	value string
}

// parseAnswers reads KIND=VALUE or KIND=@FILE.
func parseAnswers(args []string) ([]scriptedAnswer, error) {
	var out []scriptedAnswer
	for _, a := range args {
		kind, value, ok := strings.Cut(a, "=")
		if !ok || !slices.Contains(abi.InteractionKinds, kind) {
			return nil, usagef("--answer %s: want KIND=VALUE with KIND one of %s", abi.Cut(a, 40), strings.Join(abi.InteractionKinds, ", "))
		}
		value, err := valueOrFile("--answer "+kind, value)
		if err != nil {
			return nil, err
		}
		s := scriptedAnswer{kind, value}
		if err := s.check(); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// check refuses a value that could never be an answer.
func (s scriptedAnswer) check() error {
	switch {
	case s.value == abi.AnswerCancelled, s.value == abi.AnswerTimeout:
		return nil
	case s.kind == abi.KindApproval && s.value != "accept" && s.value != "reject" && !isDecision(s.value):
		return usagef("--answer approval=%s: want accept, reject, cancelled or timeout", abi.Cut(s.value, 20))
	case s.kind == abi.KindManualAction && s.value != "done":
		return usagef("--answer manual_action=%s: want done, cancelled or timeout", abi.Cut(s.value, 20))
	case s.kind == abi.KindCredentials && !isObject(s.value), s.kind == abi.KindClarification && !isObject(s.value):
		return usagef("--answer %s: want a JSON object of field values, cancelled or timeout", s.kind)
	}
	return nil
}

// isDecision is an approval in full, with its comment.
func isDecision(s string) bool {
	v, err := abi.Parse([]byte(s), abi.ParseOptions{})
	if err != nil {
		return false
	}
	action, _ := v.Member("action")
	return action.Equal("accept") || action.Equal("reject")
}

func isObject(s string) bool {
	_, err := abi.Parse([]byte(s), abi.ParseOptions{})
	return err == nil
}

// Ask takes the next scripted answer if it is of the question's kind and
// complete (§16.3).
func (s *scripted) Ask(ctx context.Context, q run.Question) (run.Answer, error) {
	if a, ok := s.take(q); ok {
		return a, nil
	}
	if s.next != nil {
		return s.next.Ask(ctx, q)
	}
	return run.Answer{InteractionID: q.InteractionID, Status: abi.AnswerCancelled}, nil
}

func (s *scripted) take(q run.Question) (run.Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) == 0 || s.answers[0].kind != q.Kind {
		return run.Answer{}, false
	}
	a := s.answers[0].answer(q)
	s.answers = s.answers[1:]
	for _, f := range q.Fields {
		if _, ok := a.Data[f.Name]; f.Required && !ok && a.Status == abi.AnswerSuccess {
			s.warn("--answer %s was not used: it lacks %s, which the question requires", q.Kind, abi.Clean(f.Name))
			return run.Answer{}, false
		}
	}
	return a, true
}

func (s scriptedAnswer) answer(q run.Question) run.Answer {
	out := run.Answer{InteractionID: q.InteractionID, Status: abi.AnswerSuccess, Data: map[string]json.RawMessage{}}
	switch {
	case s.value == abi.AnswerCancelled, s.value == abi.AnswerTimeout:
		out.Status, out.Data = s.value, nil
	case isObject(s.value):
		v, _ := abi.Parse([]byte(s.value), abi.ParseOptions{})
		for name, m := range v.Members() {
			out.Data[name] = slices.Clone(m.Raw)
		}
	case s.kind == abi.KindApproval:
		out.Data["action"] = quoted(s.value)
	case s.kind == abi.KindOTP:
		out.Data[otpField(q)] = quoted(s.value)
	}
	return out
}

// otpField is the one field a code goes into.
func otpField(q run.Question) string {
	for _, required := range []bool{true, false} {
		for _, f := range q.Fields {
			if f.Secret && f.Required == required {
				return f.Name
			}
		}
	}
	return "code"
}

func quoted(s string) json.RawMessage { return abi.AppendQuote(nil, s) }

// terminal asks on the terminal. What the host says stands apart from the
// connector's own text (S53); secrets are read without echo.
type terminal struct {
	in     *os.File
	screen *screen
}

// terminal is the owner at the keyboard, if there is one.
func (c *command) terminal() (terminal, bool) {
	in, ok := c.in.(*os.File)
	return terminal{in, c.screen}, ok && term.IsTerminal(int(in.Fd()))
}

// Ask draws the question and reads an answer per field.
func (t terminal) Ask(ctx context.Context, q run.Question) (run.Answer, error) {
	defer t.screen.hold()()
	state, _ := term.GetState(int(t.in.Fd())) // nil when it is no terminal any more
	done := make(chan run.Answer, 1)
	go func() { done <- t.ask(q) }() // a read of a terminal cannot be called off: it ends with the process
	select {
	case a := <-done:
		return a, nil
	case <-ctx.Done():
		if state != nil {
			_ = term.Restore(int(t.in.Fd()), state) // echo, if a secret was being read
		}
		return run.Answer{}, ctx.Err()
	}
}

func (t terminal) ask(q run.Question) run.Answer {
	out := run.Answer{InteractionID: q.InteractionID, Status: abi.AnswerCancelled}
	t.say("")
	t.say("── %s asks you: %s", abi.Clean(q.DisplayName), kindText[q.Kind])
	if q.Undeclared {
		t.say("   Careful: its manifest does not announce questions of this kind.")
	}
	t.say("   It says:")
	for _, line := range strings.Split(abi.CleanLines(q.RawMessage), "\n") {
		t.say("   │ %s", line)
	}
	if q.Kind == abi.KindManualAction {
		if t.choose("Done? [yes/no] ") {
			out.Status = abi.AnswerSuccess
		}
		return out
	}
	data := map[string]json.RawMessage{}
	for _, f := range q.Fields {
		value, ok := t.field(f)
		if !ok {
			return out
		}
		if value != nil {
			data[f.Name] = value
		}
	}
	out.Status, out.Data = abi.AnswerSuccess, data
	return out
}

var kindText = map[string]string{
	abi.KindOTP: "a one-time code", abi.KindCredentials: "a login", abi.KindManualAction: "to do something yourself",
	abi.KindApproval: "a decision", abi.KindClarification: "a question",
}

// field reads one value; no value and true for an optional one left empty.
func (t terminal) field(f run.Field) (json.RawMessage, bool) {
	label := abi.Clean(f.Title)
	if label == "" {
		label = abi.Clean(f.Shown)
	}
	if len(f.Enum) > 0 {
		label += " [" + abi.Clean(strings.Join(f.Enum, "/")) + "]"
	}
	switch {
	case f.Secret && f.Sealed:
		label += " (secret; the connector gets a handle, not the value)"
	case f.Secret:
		label += " (secret; the connector will see it; used for this run only)"
	case !f.Required:
		label += " (optional)"
	}
	for {
		t.prompt(label + ": ")
		text, err := t.read(f.Secret)
		switch {
		case err != nil:
			return nil, false
		case text == "" && !f.Required:
			return nil, true
		case text == "":
			t.say("   A value is needed; Ctrl-D gives up.")
		case len(f.Enum) > 0 && !slices.Contains(f.Enum, text):
			t.say("   One of %s, please.", abi.Clean(strings.Join(f.Enum, ", ")))
		default:
			return typed(f.Type, text), true
		}
	}
}

// typed gives a value the JSON type its field asks for.
func typed(typ, text string) json.RawMessage {
	if typ == "number" || typ == "integer" || typ == "boolean" {
		if v, err := abi.Parse([]byte(text), abi.ParseOptions{AnyKind: true}); err == nil && (v.Is(abi.KindNumber) || v.Is(abi.KindBool)) {
			return slices.Clone(v.Raw)
		}
	}
	return quoted(text)
}

func (t terminal) say(format string, args ...any) { t.screen.line(fmt.Sprintf(format, args...)) }

// prompt starts a line that the answer completes.
func (t terminal) prompt(text string) { fmt.Fprint(t.screen.out, "   "+text) }

// choose asks for a yes or a no.
func (t terminal) choose(prompt string) bool {
	t.prompt(prompt)
	text, err := t.read(false)
	return err == nil && (text == "y" || text == "yes")
}

func (t terminal) read(secret bool) (string, error) {
	if secret {
		b, err := term.ReadPassword(int(t.in.Fd()))
		t.say("")
		return strings.TrimSpace(string(b)), err
	}
	line, err := readLine(t.in)
	return strings.TrimSpace(line), err
}

// readLine reads one line byte by byte, so that nothing of the next answer is
// taken ahead.
func readLine(r io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		if n == 1 && b[0] == '\n' || err == io.EOF && len(line) > 0 {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, b[:n]...)
	}
}
