package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
)

// scripted answers questions from --answer, in order. Others go to next, or are
// cancelled if that is nil.
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
			return nil, usagef("--answer %s: want KIND=VALUE with KIND one of %s", abi.Cut(a, 40),
				strings.Join(abi.InteractionKinds, ", "))
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

// check returns an error for a value that can never be an answer.
func (s scriptedAnswer) check() error {
	switch {
	case s.value == abi.AnswerCancelled, s.value == abi.AnswerTimeout:
		return nil
	case s.kind == abi.KindApproval && s.value != abi.DecisionAccept && s.value != abi.DecisionReject &&
		!isDecision(s.value):
		return usagef(`--answer approval=%s: want accept, reject, cancelled, timeout, or an object such as {"action":"refine","comment":"shorter"}`, abi.Cut(s.value, 20))
	case s.kind == abi.KindManualAction && s.value != "done":
		return usagef("--answer manual_action=%s: want done, cancelled or timeout", abi.Cut(s.value, 20))
	case s.kind == abi.KindCredentials && !isObject(s.value), s.kind == abi.KindClarification && !isObject(s.value):
		return usagef("--answer %s: want a JSON object of field values, cancelled or timeout", s.kind)
	}
	return nil
}

// isDecision is an approval in full, with the comment or the text that it needs.
func isDecision(s string) bool {
	v, err := strictjson.Parse([]byte(s), strictjson.ParseOptions{})
	if err != nil {
		return false
	}
	action, _ := v.Member("action")
	text, _ := action.Text()
	says := func(name string) bool {
		m, _ := v.Member(name)
		text, _ := m.Text()
		return strings.TrimSpace(text) != ""
	}
	switch text {
	case abi.DecisionRefine:
		return says("comment")
	case abi.DecisionEdit:
		return says("edited")
	}
	return slices.Contains(abi.Decisions, text)
}

func isObject(s string) bool {
	_, err := strictjson.Parse([]byte(s), strictjson.ParseOptions{})
	return err == nil
}

// Ask takes the next scripted answer if it is of the question's kind and
// complete.
func (s *scripted) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	if a, ok := s.nextAnswer(q); ok {
		return a, nil
	}
	if s.next != nil {
		return s.next.Ask(ctx, q)
	}
	return host.Answer{InteractionID: q.InteractionID, Status: abi.AnswerCancelled}, nil
}

func (s *scripted) nextAnswer(q run.Question) (host.Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) == 0 || s.answers[0].kind != q.Kind {
		return host.Answer{}, false
	}
	a := s.answers[0].answer(q)
	s.answers = s.answers[1:]
	for _, f := range q.Fields {
		if _, ok := a.Data[f.Name]; f.Required && !ok && a.Status == abi.AnswerSuccess {
			s.warn("--answer %s was not used: it lacks %s, which the question requires", q.Kind, abi.Clean(f.Name))
			return host.Answer{}, false
		}
	}
	return a, s.withFiles(q, a)
}

// warnUnused warns of unused answers. No question of the first one's kind came, and it
// blocked the others.
func (s *scripted) warnUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.answers {
		if i == 0 {
			s.warn("--answer %s was not used: no question of that kind came when it was its turn", a.kind)
		} else {
			s.warn("--answer %s was not used either", a.kind)
		}
	}
}

// fileAnswer returns a file as a question is answered with it.
func fileAnswer(path string) (json.RawMessage, error) {
	f, err := os.Open(app.Home(path))
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	data, err := io.ReadAll(io.LimitReader(f, abi.MaxAnswerFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > abi.MaxAnswerFile {
		return nil, fmt.Errorf("%s has more than 512 KiB", path)
	}
	media := mime.TypeByExtension(filepath.Ext(path))
	if i := strings.IndexByte(media, ';'); i >= 0 {
		media = media[:i]
	}
	return quoted(abi.AnswerFile{Name: filepath.Base(path), Media: media, Data: data}.String()), nil
}

// withFiles replaces @PATH in an answer by the content of the file.
func (s *scripted) withFiles(q run.Question, a host.Answer) bool {
	for _, f := range q.Fields {
		path, named := strings.CutPrefix(strictjson.String(a.Data[f.Name]), "@")
		if !f.File || !named {
			continue
		}
		value, err := fileAnswer(path)
		if err != nil {
			s.warn("--answer %s was not used: %s", q.Kind, abi.Clean(err.Error()))
			return false
		}
		a.Data[f.Name] = value
	}
	return true
}

func (s scriptedAnswer) answer(q run.Question) host.Answer {
	out := host.Answer{InteractionID: q.InteractionID, Status: abi.AnswerSuccess, Data: map[string]json.RawMessage{}}
	switch {
	case s.value == abi.AnswerCancelled, s.value == abi.AnswerTimeout:
		out.Status, out.Data = s.value, nil
	case isObject(s.value):
		v, _ := strictjson.Parse([]byte(s.value), strictjson.ParseOptions{})
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

// otpField returns the one field a code goes into.
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

func quoted(s string) json.RawMessage { return strictjson.AppendQuote(nil, s) }
