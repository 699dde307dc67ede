package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// asking is the open interaction of a run.
type asking struct {
	id          string // as events name it
	interruptID string
	message     *abi.InteractionMessage
	schema      *reducedSchema
	fields      []Field
	call        uint32 // the ABI call that waits; 0 on stdio
	deadline    time.Time
	timed       bool
	last        bool // the deadline is the end of the time that the run has for its owner
	pending     *store.Interaction
	since       time.Time // asked, by this process
	cancel      context.CancelFunc
	span        span
	question    Question // as the owner's channel gets it
	attachments []abi.Attachment
	page        Page
	host        *hostQuestion // who asks, when that is not the guest; nil else
}

// answer closes an interaction; by is the principal that did, or byHost.
type answer struct {
	host.Answer
	to     *asking
	by     string
	err    error
	reason string        // why the host closed it; "" for none
	lead   []store.Event // what is recorded before its end
}

func answerOf(a *asking, status, by string) answer {
	return answer{Answer: host.Answer{InteractionID: a.id, Status: status}, to: a, by: by}
}

// seconds bounds a duration that a guest chose.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 10*365*24*3600) * float64(time.Second))
}

// answerText is the text of a string, or a number as it is written.
func answerText(raw json.RawMessage) string {
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{AnyKind: true})
	if err != nil {
		return ""
	}
	if v.Is(strictjson.KindNumber) {
		return string(raw)
	}
	text, _ := v.Text()
	return text
}

func fieldNamed(fields []Field, name string) Field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	return Field{}
}

// askForHost opens a question of the host's own: an interaction of the run like
// any other, but the guest neither asked nor hears of it.
func (qs *questions) askForHost(q *hostQuestion) {
	switch {
	case qs.deps.Owner == nil || !qs.plan.Interactive:
		q.answer(hostAnswer{err: binding.ErrNotInteractive})
		return
	case !qs.outcome.ready(), qs.outcome.left() != nil, qs.outcome.proposal() != nil, qs.asking != nil:
		q.answer(hostAnswer{err: binding.ErrEnding})
		return
	}
	m := &abi.InteractionMessage{RequestID: hexID("host_", 8), Kind: abi.KindManualAction, Message: q.message}
	if q.timeout > 0 {
		m.TimeoutSeconds = new(q.timeout.Seconds())
	}
	qs.ask(m, 0, q)
}

// withdraw closes a question that nobody waits for any more.
func (qs *questions) withdraw(q *hostQuestion) {
	if a := qs.asking; a != nil && a.host == q && !qs.outcome.over() {
		qs.closeQuestion(answerOf(a, abi.AnswerCancelled, byHost))
	}
}

// tellHost gives the browser the end of its question. While the run stands still
// it waits, as a guest's answer does.
func (qs *questions) tellHost(q *asking, status string) {
	tell := func() { q.host.answer(hostAnswer{id: q.id, status: status}) }
	if qs.calls.outsideLoop() { // the call goes on
		qs.clocks.begin(time.Now(), false)
	} else {
		qs.calls.rest(time.Now())
	}
	qs.pause.afterwards(tell)
}

// watched reports whether the loss of a surface ends a question.
func (q *asking) watched() bool {
	return q != nil && (q.message.Kind == abi.KindManualAction || q.message.Kind == abi.KindOTP)
}

// A hostQuestion is what the browser asks the owner for itself.
type hostQuestion struct {
	message string
	timeout time.Duration
	reply   chan hostAnswer // capacity 1
}

type hostAnswer struct {
	id, status string
	err        error
}

// answer replies once; to nobody it does nothing.
func (q *hostQuestion) answer(a hostAnswer) {
	if q == nil {
		return
	}
	select {
	case q.reply <- a:
	default:
	}
}

// mark names the interaction and its stream on the events of one fact.
func (q *asking) mark(events []store.Event) []store.Event {
	for i := range events {
		events[i].InteractionID = q.id
		events[i].Stream = store.Stream(q.message.Stream)
	}
	return events
}

// decisions are those that are offered; edit is what openwop calls the editing one
// there.
func (q *asking) decisions(edit string) []string {
	if q.schema == nil { // a manual action
		return []string{abi.DecisionAccept, abi.DecisionReject}
	}
	var out []string
	for _, e := range q.schema.Properties["action"].Enum {
		if d := strictjson.String(e); d == abi.DecisionEdit {
			out = append(out, edit)
		} else {
			out = append(out, d)
		}
	}
	return out
}

func (q *asking) sensitivity() string {
	switch q.message.Kind {
	case abi.KindCredentials, abi.KindOTP:
		return abi.SensitivitySecret
	case abi.KindClarification:
		if q.schema.secret() {
			return abi.SensitivitySecret
		}
	}
	return abi.SensitivityNonSecret
}
