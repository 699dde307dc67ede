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
func (r *run) askForHost(q *hostQuestion) {
	switch {
	case r.deps.Owner == nil || !r.plan.Interactive:
		q.answer(hostAnswer{err: ErrNotInteractive})
		return
	case !r.ready(), r.exit != nil, r.done != nil, r.asking != nil:
		q.answer(hostAnswer{err: ErrEnding})
		return
	}
	m := &abi.InteractionMessage{RequestID: hexID("host_", 8), Kind: abi.KindManualAction, Message: q.message}
	if q.timeout > 0 {
		m.TimeoutSeconds = ptr(q.timeout.Seconds())
	}
	r.ask(m, 0, q)
}

// withdraw closes a question that nobody waits for any more.
func (r *run) withdraw(q *hostQuestion) {
	if a := r.asking; a != nil && a.host == q && r.latched == nil {
		r.closeQuestion(answerOf(a, abi.AnswerCancelled, byHost))
	}
}

// tellHost gives the browser the end of its question. While the run stands still
// it waits, as a guest's answer does.
func (r *run) tellHost(q *asking, status string) {
	tell := func() { q.host.answer(hostAnswer{id: q.id, status: status}) }
	if r.beside { // the call goes on
		r.clocks.begin(time.Now(), false)
	} else {
		r.rest(time.Now())
	}
	if r.paused != nil {
		r.paused.told = tell
		return
	}
	tell()
}

// browserAsked tells the binding of a question that is open.
func (r *run) browserAsked(q *asking) {
	if b := r.browser.open(); b != nil {
		b.Asked(q.id, q.message.Kind, q.deadline)
	}
}

// browserAnswered tells it that the question is closed.
func (r *run) browserAnswered(q *asking) {
	if b := r.browser.open(); b != nil {
		b.Answered(q.id)
	}
}

// browserAssisted tells the binding of an assistance that is open, and remembers
// what it says of the surface.
func (r *run) browserAssisted(m *abi.AssistanceMessage) {
	b := r.browser.open()
	if b == nil {
		return
	}
	for _, a := range r.attachments(m.Attachments) {
		if a.Kind == surfaceKind {
			r.browser.surfaces[m.ID] = a
		}
	}
	copied := *m
	b.Assisted(m.ID, &copied)
}

// browserReleased tells it that an assistance is over.
func (r *run) browserReleased(id string) {
	delete(r.browser.surfaces, id)
	if b := r.browser.open(); b != nil {
		b.Assisted(id, nil)
	}
}
