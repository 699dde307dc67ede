package run

import (
	"time"

	"github.com/sluicehost/sluice/abi"
)

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

// askForHost opens a question of the host's own: an interaction of the run like
// any other, but the guest neither asked nor hears of it.
func (qs *questions) askForHost(q *hostQuestion) {
	switch {
	case qs.deps.Owner == nil || !qs.plan.Interactive:
		q.answer(hostAnswer{err: ErrNotInteractive})
		return
	case !qs.outcome.ready(), qs.outcome.left() != nil, qs.outcome.proposal() != nil, qs.asking != nil:
		q.answer(hostAnswer{err: ErrEnding})
		return
	}
	m := &abi.InteractionMessage{RequestID: hexID("host_", 8), Kind: abi.KindManualAction, Message: q.message}
	if q.timeout > 0 {
		m.TimeoutSeconds = ptr(q.timeout.Seconds())
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

// browserAsked tells the binding of a question that is open.
func (br *browsing) browserAsked(q *asking) {
	if b := br.open(); b != nil {
		b.Asked(q.id, q.message.Kind, q.deadline)
	}
}

// browserAnswered tells it that the question is closed.
func (br *browsing) browserAnswered(q *asking) {
	if b := br.open(); b != nil {
		b.Answered(q.id)
	}
}

// browserAssisted tells the binding of an assistance that is open, and remembers
// what it says of the surface.
func (br *browsing) browserAssisted(m *abi.AssistanceMessage) {
	b := br.open()
	if b == nil {
		return
	}
	for _, a := range br.assistances.attachments(m.Attachments) {
		if a.Kind == surfaceKind {
			br.surfaces[m.ID] = a
		}
	}
	copied := *m
	b.Assisted(m.ID, &copied)
}

// browserReleased tells it that an assistance is over.
func (br *browsing) browserReleased(id string) {
	delete(br.surfaces, id)
	if b := br.open(); b != nil {
		b.Assisted(id, nil)
	}
}
