package run

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// questions are the interactions of a run, one at a time.
type questions struct {
	*parts
	openQuestion  *pendingQuestion // the open question; nil for none
	requestIDUses map[string]int   // number of uses of each request_id
	budgetSpent   bool             // the owner's budget is used up
	answers       chan answer
	askWG         sync.WaitGroup // calls of Owner.Ask
	askMu         sync.Mutex     // held during such a call
}

// open reports whether a question waits for its owner.
func (qs *questions) open() bool { return qs.openQuestion != nil }

// current returns the open question, nil for none.
func (qs *questions) current() *pendingQuestion { return qs.openQuestion }

// forget forgets the open question of a resumed run. It stays open in the store.
func (qs *questions) forget() { qs.openQuestion = nil }

// openID returns its id, "" for none.
func (qs *questions) openID() string {
	if qs.openQuestion == nil {
		return ""
	}
	return qs.openQuestion.id
}

// needsSurface returns the open question if it needs its browser surface, otherwise nil.
func (qs *questions) needsSurface() *pendingQuestion {
	if !qs.openQuestion.needsSurface() {
		return nil
	}
	return qs.openQuestion
}

// answered returns the channel of answers from Owner.Ask.
func (qs *questions) answered() <-chan answer { return qs.answers }

// wait waits until no call of Owner.Ask is in progress.
func (qs *questions) wait() { qs.askWG.Wait() }

// cancel closes the open question of a run that is being cancelled.
func (qs *questions) cancel() {
	if qs.openQuestion != nil {
		qs.closeQuestion(answerOf(qs.openQuestion, abi.AnswerCancelled, byHost))
	}
}

// postpone extends the deadline of the open question by the duration of a pause.
func (qs *questions) postpone(by time.Duration) {
	if qs.openQuestion != nil {
		qs.openQuestion.deadline = qs.openQuestion.deadline.Add(by)
	}
}

// postponed returns the open question as the store keeps it after a pause, nil if there is nothing to change.
func (qs *questions) postponed(by time.Duration) *store.Interaction {
	a := qs.openQuestion
	if a == nil || !a.hasDeadline {
		return nil
	}
	moved := *a.pending
	moved.ExpiresAt = new(qs.storeTime(a.deadline.Add(by)))
	a.pending = &moved
	return &moved
}

// interact handles INTERACTION.
func (qs *questions) interact(m *abi.InteractionMessage, call uint32) {
	if qs.openQuestion != nil { // a question of the host, in a call that the guest waits for
		qs.outcome.latch(&cause{reason: "worker_protocol_error", origin: "runtime",
			message: "The worker asked a question within a call."})
		return
	}
	qs.ask(m, call, nil)
}

// ask asks a question of the guest or of the host: it flushes records, closes superseded assistances, looks at
// the browser surface, records the question, and passes it to the owner.
func (qs *questions) ask(m *abi.InteractionMessage, call uint32, host *hostQuestion) {
	qs.records.flushAll()
	if !qs.loop.barrier() {
		return
	}
	m.Schema = bytes.Clone(m.Schema)
	attachments, at := qs.bindings.surfaceOf(m.Kind)
	if !qs.outcome.ready() {
		return
	}
	a := qs.question(m, call)
	a.attachments, a.page, a.host, a.askedAt = attachments, at, host, time.Now()
	if !qs.history.live() {
		qs.askAgain(a)
		return
	}
	var escalated []store.Event
	if host == nil {
		escalated = qs.assistances.escalate(m.Stream)
	}
	a.pending = &store.Interaction{
		ID: a.id, RunID: qs.id, NodeID: qs.plan.manifest.Node(), Interrupt: a.interruptID, Kind: m.Kind,
		Stream: store.Stream(m.Stream), Message: m.Message, Schema: m.Schema, OpenedAt: store.Now(qs.deps.Store),
	}
	if a.hasDeadline {
		a.pending.ExpiresAt = new(qs.storeTime(a.deadline))
	}
	a.question = qs.ownerQuestion(a)
	qs.history.writeMark(a)
	events := slices.Concat(escalated, qs.questionEvents(a))
	qs.openQuestion = a
	kind, _ := qs.interruptData(a, "")
	_, a.span = qs.journal.startSpan("interrupt", "node_id", qs.plan.manifest.Node(), "interrupt_kind", kind,
		"interrupt_id", a.interruptID)
	qs.loop.stage("waiting")
	qs.commits.submit(&store.Commit{Ask: a.pending, Run: qs.loop.row(), Events: events}, nil)
	if !qs.loop.barrier() {
		return
	}
	if left, bounded := qs.clocks.ownerLeft(qs.plan.Budgets); bounded && (left == 0 || qs.budgetSpent) {
		qs.closeQuestion(answerOf(a, abi.AnswerTimeout, byHost)) // further questions are closed at once
		return
	}
	qs.clocks.begin(time.Now(), true)
	qs.passToOwner(a)
}

// askAgain repeats a question that the run asked before it was suspended. If it was answered, it gets the same
// answer; the open one is asked again.
func (qs *questions) askAgain(a *pendingQuestion) {
	qs.assistances.escalate(a.message.Stream)
	qs.openQuestion, a.question = a, qs.ownerQuestion(a)
	qs.loop.stage("waiting")
	if qs.history.matchQuestion(a) {
		qs.passToOwner(a)
		return
	}
	qs.history.resolveOpen()
}

// passToOwner passes the open question to Owner.Ask in a goroutine.
func (qs *questions) passToOwner(a *pendingQuestion) {
	qs.pause.updateSlot()
	qs.bindings.browserAsked(a)
	ctx, cancel := context.WithCancel(qs.ctx)
	a.cancel = cancel
	q := a.question
	if a.hasDeadline {
		q.Timeout = time.Until(a.deadline)
	}
	qs.askWG.Go(func() {
		qs.askMu.Lock() // the call of a closed question may not have returned yet
		got, err := qs.deps.Owner.Ask(ctx, q)
		qs.askMu.Unlock()
		select {
		case qs.answers <- answer{Answer: got, question: a, by: ownerOr(got.By), err: err}:
		case <-qs.ctx.Done():
			qs.reportOutcome(answer{question: a, err: err}, ErrTooLate)
		}
	})
}

// question builds an interaction with its id and its form.
func (qs *questions) question(m *abi.InteractionMessage, call uint32) *pendingQuestion {
	a := &pendingQuestion{id: qs.interactionID(m.RequestID), interruptID: newULID("int_", time.Now()), message: m,
		call: call, schema: qs.reduce(m.Kind, m.Schema)}
	a.fields = qs.fields(a)
	now := time.Now()
	if m.TimeoutSeconds != nil {
		a.deadline, a.hasDeadline = now.Add(seconds(*m.TimeoutSeconds)), true
	}
	if left, bounded := qs.clocks.ownerLeft(qs.plan.Budgets); bounded &&
		(!a.hasDeadline || now.Add(left).Before(a.deadline)) {
		a.deadline, a.hasDeadline, a.budgetDeadline = now.Add(left), true, true
	}
	return a
}

// interactionID returns the connector's own id, with a number from its second use on. Ids are unique within a
// run.
func (qs *questions) interactionID(request string) string {
	request = qs.canary.Text(request)
	qs.requestIDUses[request]++
	n := qs.requestIDUses[request]
	if n == 1 {
		return request
	}
	for qs.requestIDUses[request+"#"+itoa(n)] > 0 {
		n++
	}
	id := request + "#" + itoa(n)
	qs.requestIDUses[id]++
	return id
}

// fields returns the form of a question, sorted by name.
func (qs *questions) fields(a *pendingQuestion) []Field {
	if a.schema == nil {
		return nil
	}
	names := map[string]string{} // shown name -> the connector's own
	schema, _ := strictjson.Parse(a.message.Schema, strictjson.ParseOptions{})
	props, _ := schema.Member("properties")
	if a.message.Kind != abi.KindApproval {
		for name, shown := range shownNames(props) {
			names[shown] = name
		}
	}
	var out []Field
	for _, shown := range sortedKeys(a.schema.Properties) {
		s := a.schema.Properties[shown]
		f := Field{
			Name: shown, Shown: shown, Title: s.Title, Type: s.Type, Secret: s.Secret,
			Required: slices.Contains(a.schema.Required, shown),
			Sealed:   deliveryOf(qs.plan.manifest, a.message.Kind, shown, s.Secret) == "sealed",
		}
		if name, ok := names[shown]; ok {
			f.Name = name
			f.Sealed = deliveryOf(qs.plan.manifest, a.message.Kind, name, s.Secret) == "sealed"
		}
		if s.isFile() {
			f.File, f.Accept, f.Sealed = true, s.Accept, false
		}
		for _, e := range s.Enum {
			f.Enum = append(f.Enum, strictjson.String(e))
		}
		out = append(out, f)
	}
	return out
}

// ownerQuestion returns the question as Owner.Ask gets it.
func (qs *questions) ownerQuestion(a *pendingQuestion) Question {
	m := a.message
	q := Question{
		RunID: string(qs.id), ConnectionID: string(qs.plan.Connection.ID),
		DisplayName: qs.plan.manifest.DisplayName, InteractionID: a.id, InterruptID: a.interruptID,
		NodeID: qs.plan.manifest.Node(), Kind: m.Kind, Stream: m.Stream, Page: a.page,
		Message: qs.canary.Assistance(m.Message, 200), RawMessage: abi.CleanLines(m.Message),
		RawSchema: bytes.Clone(m.Schema), Fields: a.fields,
		Undeclared: a.host == nil && !slices.Contains(qs.plan.manifest.HumanKinds, m.Kind),
	}
	if a.hasDeadline {
		q.Timeout = time.Until(a.deadline)
	}
	return q
}

// badChannel is the reason of a run that failed because Owner.Ask returned an answer to another question.
const badChannel = "interaction_handler_invalid_response"

// reportOutcome tells the owner's channel whether an answer was accepted.
func (qs *questions) reportOutcome(a answer, err error) {
	if owner, ok := qs.deps.Owner.(Settler); ok && a.err == nil && a.by != byHost {
		owner.Settled(qs.id, a.question.id, err)
	}
}

// handleAnswer handles an answer of Owner.Ask.
func (qs *questions) handleAnswer(a answer) {
	q := qs.openQuestion
	if q == nil || a.question != q || qs.outcome.over() {
		qs.reportOutcome(a, ErrTooLate) // the question was closed already
		return
	}
	if a.err != nil {
		a = answerOf(q, abi.AnswerCancelled, byHost)
	}
	known := a.Status == abi.AnswerSuccess || a.Status == abi.AnswerCancelled || a.Status == abi.AnswerTimeout
	if a.InteractionID != q.id || !known {
		qs.reportOutcome(a, ErrTooLate)
		qs.outcome.latch(&cause{reason: badChannel, origin: "runtime",
			message: "The owner's channel answered another question or with an unknown status."})
		return
	}
	qs.closeQuestion(a)
}

// interactionTimeout closes a question whose deadline has passed.
func (qs *questions) interactionTimeout(now time.Time) {
	if q := qs.openQuestion; q != nil && q.hasDeadline && !now.Before(q.deadline) && !qs.history.replaying() {
		qs.budgetSpent = qs.budgetSpent || q.budgetDeadline // ownerLeft may be positive: its clock starts after the commit
		qs.closeQuestion(answerOf(q, abi.AnswerTimeout, byHost))
	}
}

// closeQuestion records the end of the open interaction, then passes the response on. The answer is in no event,
// except for decisions and what is not secret of a clarification.
func (qs *questions) closeQuestion(a answer) {
	q := qs.openQuestion
	if q.cancel != nil {
		q.cancel()
	}
	qs.clocks.begin(time.Now(), false)
	if a.Status != abi.AnswerSuccess {
		a.Data = nil
		qs.gaps.add(qs.interactionGap(q, a.Status))
	}
	qs.history.recordAnswer(q, a)
	response := qs.response(q, a) // protects secret values before anything is recorded
	qs.loop.stage("running")
	events := append(a.leadEvents, qs.answerEvents(q, a)...)
	qs.commits.submit(&store.Commit{Answered: q.id, Run: qs.loop.row(), Events: events}, func(_ store.Ack, err error) {
		qs.reportOutcome(a, err)
	})
	qs.openQuestion = nil
	q.span.end(nil)
	qs.bindings.browserAnswered(q)
	qs.pause.rememberAnswer(q.interruptID)
	qs.pause.updateSlot()
	if !qs.outcome.cancelled() {
		if !qs.loop.barrier() {
			return
		}
		if q.host == nil {
			qs.proto.Step(abi.StepAnswer)
		}
	}
	if q.host != nil {
		qs.tellHost(q, a.Status)
		return
	}
	qs.respond(q, response)
	qs.calls.endCallSpan(time.Now())
}

func (qs *questions) interactionGap(q *pendingQuestion, status string) KnownGap {
	action := abi.ManualActionRequired
	if q.message.Kind == abi.KindCredentials {
		action = abi.RefreshCredentials
	}
	g := KnownGap{Kind: gapInteraction, Reason: "interaction_" + status, Severity: "actionable",
		Message: qs.canary.Assistance(q.message.Message, maxGapText), RecoveryHint: Hint{action, false}}
	if q.message.Stream != "" {
		g.Stream = new(q.message.Stream)
	}
	return g
}

// response builds INTERACTION_RESPONSE. Sealed fields become handles, and secret values are protected from now
// on.
func (qs *questions) response(q *pendingQuestion, a answer) abi.Response {
	out := abi.Response{RequestID: q.message.RequestID, Status: a.Status}
	if a.Status != abi.AnswerSuccess {
		return out
	}
	out.Data = map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(a.Data)) { // determines the order of handles
		raw := a.Data[name]
		f := fieldNamed(q.fields, name)
		switch {
		case f.Sealed:
			raw = strictjson.AppendQuote(nil, qs.sealAnswer(q.message.Kind+"."+name, raw))
			out.SealedFields = append(out.SealedFields, name)
		case f.Secret:
			qs.secrets.protect(q.message.Kind+"."+name, answerText(raw))
			qs.canary.ProtectWord(answerText(raw))
		}
		out.Data[name] = raw
	}
	slices.Sort(out.SealedFields)
	return out
}

// sealAnswer returns the handle for a sealed field of an answer.
func (qs *questions) sealAnswer(field string, raw json.RawMessage) string {
	var to []abi.Destination
	if s := qs.plan.manifest.Sluice; s != nil {
		for _, d := range s.InteractionFields[field].Destinations {
			to = append(to, qs.plan.atOwners(d)...)
		}
	}
	return qs.secrets.seal(field, answerText(raw), to)
}

// respond passes a response to the guest, as the reply of its call or as a line on stdio.
func (qs *questions) respond(q *pendingQuestion, response abi.Response) {
	if qs.plan.Transport == "stdio" {
		response.Type = "INTERACTION_RESPONSE"
		if line, err := redact.Marshal(response); err == nil {
			qs.calls.feed(append(line, '\n'), "interaction_response")
			qs.calls.serveStdin()
		}
		return
	}
	if qs.outcome.cancelled() {
		qs.calls.replyError(q.call, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
		return
	}
	body, err := redact.Marshal(response)
	if err != nil {
		qs.outcome.latch(hostFault("encode response", err))
		return
	}
	qs.calls.reply(q.call, body)
}

// closeUnanswered closes a question whose guest is gone. After a violation while waiting, or an invalid answer of
// the owner's channel, it stays open and the terminal event names it.
func (qs *questions) closeUnanswered() {
	if qs.openQuestion == nil || qs.outcome.unanswered() {
		return
	}
	q := qs.openQuestion
	if q.cancel != nil {
		q.cancel()
	}
	qs.calls.unread("interaction_response")
	qs.gaps.add(qs.interactionGap(q, abi.AnswerCancelled))
	events := qs.answerEvents(q, answerOf(q, abi.AnswerCancelled, byHost))
	qs.openQuestion = nil
	q.span.end(nil)
	qs.bindings.browserAnswered(q)
	qs.commits.submit(&store.Commit{Answered: q.id, Events: events}, nil)
	q.host.answer(hostAnswer{id: q.id, status: abi.AnswerCancelled})
}

// surfaceChanged records a change of the surface in open assistances and the open question.
func (bs *bindings) surfaceChanged(a abi.Attachment) {
	bs.questions.surfaceChanged(a)
	for _, o := range bs.proto.OpenAssistances() {
		before, ok := bs.surfaces[o.ID]
		now := bs.shown(a, before)
		if !ok || now == before {
			continue
		}
		attachments := bs.assistances.attachments(o.Message.Attachments)
		for i := range attachments {
			if attachments[i].Kind == surfaceKind {
				attachments[i] = bs.shown(a, attachments[i])
			}
		}
		bs.surfaces[o.ID] = now
		d := data{"assistance_request_id": bs.canary.Text(o.ID), "attachments": attachments}
		bs.commits.record(bs.journal.streamEvent("run.assistance_updated", "in_progress", o.Stream, d))
	}
}

// surfaceChanged records a change of the surface in the open question.
func (qs *questions) surfaceChanged(a abi.Attachment) {
	q := qs.openQuestion
	if q == nil || len(q.attachments) != 1 {
		return
	}
	if now := qs.bindings.shown(a, q.attachments[0]); now != q.attachments[0] {
		q.attachments = []abi.Attachment{now}
		e := qs.journal.event("run.assistance_updated", "in_progress",
			data{"assistance_request_id": q.id, "attachments": q.attachments})
		qs.commits.submit(&store.Commit{Events: q.mark([]store.Event{e})}, nil)
	}
}
