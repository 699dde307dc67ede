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

// A pendingQuestion is the open interaction of a run.
type pendingQuestion struct {
	id             string // id in events
	interruptID    string
	message        *abi.InteractionMessage
	schema         *reducedSchema
	fields         []Field
	call           uint32 // the ABI call that awaits the reply; 0 on stdio
	deadline       time.Time
	hasDeadline    bool
	budgetDeadline bool // the deadline is the end of the owner's budget
	pending        *store.Interaction
	askedAt        time.Time // when this process asked
	cancel         context.CancelFunc
	span           span
	question       Question // as Owner.Ask gets it
	attachments    []abi.Attachment
	page           Page
	host           *hostQuestion // set if the host asks, not the guest
}

// An answer closes an interaction. by is the principal that answered, or byHost.
type answer struct {
	host.Answer
	question   *pendingQuestion
	by         string
	err        error
	reason     string        // why the host closed it; "" for none
	leadEvents []store.Event // events that are recorded before the end of the question
}

func answerOf(a *pendingQuestion, status, by string) answer {
	return answer{Answer: host.Answer{InteractionID: a.id, Status: status}, question: a, by: by}
}

// seconds converts a duration that a guest chose, and bounds it.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 10*365*24*3600) * float64(time.Second))
}

// answerText returns the text of a string, or a number as written.
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

// askForHost opens a question of the host itself. It is an interaction of the run like any other, but the guest
// does not learn of it.
func (qs *questions) askForHost(q *hostQuestion) {
	switch {
	case qs.deps.Owner == nil || !qs.plan.Interactive:
		q.answer(hostAnswer{err: binding.ErrNotInteractive})
		return
	case !qs.outcome.ready(), qs.outcome.workerExit() != nil, qs.outcome.proposal() != nil, qs.openQuestion != nil:
		q.answer(hostAnswer{err: binding.ErrEnding})
		return
	}
	m := &abi.InteractionMessage{RequestID: hexID("host_", 8), Kind: abi.KindManualAction, Message: q.message}
	if q.timeout > 0 {
		m.TimeoutSeconds = new(q.timeout.Seconds())
	}
	qs.ask(m, 0, q)
}

// withdraw closes a question for which nobody waits any more.
func (qs *questions) withdraw(q *hostQuestion) {
	if a := qs.openQuestion; a != nil && a.host == q && !qs.outcome.over() {
		qs.closeQuestion(answerOf(a, abi.AnswerCancelled, byHost))
	}
}

// tellHost passes the end of its question to the browser. During a pause that waits, like an answer to the
// guest.
func (qs *questions) tellHost(q *pendingQuestion, status string) {
	tell := func() { q.host.answer(hostAnswer{id: q.id, status: status}) }
	if qs.calls.isAsync() { // the call continues
		qs.clocks.begin(time.Now(), false)
	} else {
		qs.calls.endCallSpan(time.Now())
	}
	qs.pause.whenRunning(tell)
}

// needsSurface reports whether a question ends if the browser surface is lost.
func (q *pendingQuestion) needsSurface() bool {
	return q != nil && (q.message.Kind == abi.KindManualAction || q.message.Kind == abi.KindOTP)
}

// A hostQuestion is a question that the browser asks the owner by itself.
type hostQuestion struct {
	message string
	timeout time.Duration
	reply   chan hostAnswer // capacity 1
}

type hostAnswer struct {
	id, status string
	err        error
}

// answer replies once. It does nothing for a nil q.
func (q *hostQuestion) answer(a hostAnswer) {
	if q == nil {
		return
	}
	select {
	case q.reply <- a:
	default:
	}
}

// mark sets the interaction and its stream on events.
func (q *pendingQuestion) mark(events []store.Event) []store.Event {
	for i := range events {
		events[i].InteractionID = q.id
		events[i].Stream = store.Stream(q.message.Stream)
	}
	return events
}

// decisions returns the decisions that are offered. edit is the name of the editing one.
func (q *pendingQuestion) decisions(edit string) []string {
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

func (q *pendingQuestion) sensitivity() string {
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
