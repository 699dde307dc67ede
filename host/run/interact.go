package run

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// asking is the open interaction of a run.
type asking struct {
	id          string // R136
	interruptID string
	message     *abi.InteractionMessage
	schema      *reducedSchema
	fields      []Field
	call        uint32 // the ABI call that waits; 0 on stdio
	deadline    time.Time
	timed       bool
	pending     *store.Interaction
	cancel      context.CancelFunc
	span        span
	attachments []abi.Attachment
	page        Page
	host        *hostQuestion // who asks, when that is not the guest; nil else
}

// answer closes an interaction; by is the principal that did, or byHost.
type answer struct {
	Answer
	to     *asking
	by     string
	err    error
	reason string        // why the host closed it; "" for none
	lead   []store.Event // what is recorded before its end
}

func answerOf(a *asking, status, by string) answer {
	return answer{Answer: Answer{InteractionID: a.id, Status: status}, to: a, by: by}
}

// interact is INTERACTION.
func (r *run) interact(m *abi.InteractionMessage, call uint32) {
	if r.asking != nil { // of the host, in a call that the guest waits for
		r.latch(&cause{reason: "worker_protocol_error", origin: "runtime", message: "The worker asked a question within a call."})
		return
	}
	r.ask(m, call, nil)
}

// ask flushes, escalates, probes, records and asks, for the guest or for
// the host itself.
func (r *run) ask(m *abi.InteractionMessage, call uint32, host *hostQuestion) {
	r.flushAll()
	if !r.barrier() {
		return
	}
	m.Schema = bytes.Clone(m.Schema)
	attachments, at := r.surfaceOf(m.Kind)
	if !r.ready() {
		return
	}
	a := r.question(m, call)
	a.attachments, a.page, a.host = attachments, at, host
	var escalated []store.Event
	if host == nil {
		escalated = r.escalate(m.Stream)
	}
	events := slices.Concat(escalated, r.questionEvents(a))
	a.pending = &store.Interaction{
		ID: a.id, RunID: r.id, NodeID: r.plan.manifest.Node(), Interrupt: a.interruptID, Kind: m.Kind, Stream: store.Stream(m.Stream),
		Message: m.Message, Schema: m.Schema, OpenedAt: time.Now(),
	}
	if a.timed {
		a.pending.ExpiresAt = ptr(a.deadline)
	}
	r.asking = a
	kind, _ := r.interruptData(a, "")
	_, a.span = r.traced(r.spanned, "interrupt", "node_id", r.plan.manifest.Node(), "interrupt_kind", kind, "interrupt_id", a.interruptID)
	r.stage("waiting")
	r.submit(&store.Commit{Ask: a.pending, Run: ptr(r.rec), Events: events}, nil)
	if !r.barrier() {
		return
	}
	if left, bounded := r.clocks.ownerLeft(r.plan.Budgets); bounded && left == 0 {
		r.closeQuestion(answerOf(a, abi.AnswerTimeout, byHost)) // later ones close at once
		return
	}
	r.clocks.begin(time.Now(), true)
	r.place()
	r.browserAsked(a)
	ctx, cancel := context.WithCancel(r.ctx)
	a.cancel = cancel
	q := r.shown(a)
	r.owner.Go(func() {
		r.ownerTurn.Lock() // a question that was closed may still be on its way back
		got, err := r.deps.Owner.Ask(ctx, q)
		r.ownerTurn.Unlock()
		select {
		case r.answers <- answer{Answer: got, to: a, by: ownerOr(got.By), err: err}:
		case <-r.ctx.Done():
			got.settle(ErrTooLate)
		}
	})
}

// question gives an interaction its owner-visible id and its form.
func (r *run) question(m *abi.InteractionMessage, call uint32) *asking {
	a := &asking{id: r.interactionID(m.RequestID), interruptID: newULID("int_", time.Now()), message: m, call: call, schema: r.reduce(m.Kind, m.Schema)}
	a.fields = r.fields(a)
	now := time.Now()
	if m.TimeoutSeconds != nil {
		a.deadline, a.timed = now.Add(seconds(*m.TimeoutSeconds)), true
	}
	if left, bounded := r.clocks.ownerLeft(r.plan.Budgets); bounded && (!a.timed || now.Add(left).Before(a.deadline)) {
		a.deadline, a.timed = now.Add(left), true
	}
	return a
}

// interactionID is R136: the connector's own id, and a number from its second
// use on. No two questions of a run share one.
func (r *run) interactionID(request string) string {
	request = r.canary.Text(request)
	r.asked[request]++
	n := r.asked[request]
	if n == 1 {
		return request
	}
	for r.asked[request+"#"+itoa(n)] > 0 {
		n++
	}
	id := request + "#" + itoa(n)
	r.asked[id]++
	return id
}

// seconds bounds a duration that a guest chose.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 10*365*24*3600) * float64(time.Second))
}

// fields is the form of a question, sorted by name.
func (r *run) fields(a *asking) []Field {
	if a.schema == nil {
		return nil
	}
	names := map[string]string{} // shown -> the connector's own
	schema, _ := abi.Parse(a.message.Schema, abi.ParseOptions{})
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
			Sealed:   deliveryOf(r.plan.manifest, a.message.Kind, shown, s.Secret) == "sealed",
		}
		if name, ok := names[shown]; ok {
			f.Name = name
			f.Sealed = deliveryOf(r.plan.manifest, a.message.Kind, name, s.Secret) == "sealed"
		}
		if s.isFile() {
			f.File, f.Accept, f.Sealed = true, s.Accept, false
		}
		for _, e := range s.Enum {
			f.Enum = append(f.Enum, abi.String(e))
		}
		out = append(out, f)
	}
	return out
}

// shown is the question as the owner's channel gets it.
func (r *run) shown(a *asking) Question {
	m := a.message
	q := Question{
		RunID: string(r.id), ConnectionID: string(r.plan.Connection.ID), ConnectorName: r.plan.manifest.Name(),
		DisplayName: r.plan.manifest.DisplayName, InteractionID: a.id, InterruptID: a.interruptID, NodeID: r.plan.manifest.Node(), Kind: m.Kind, Stream: m.Stream,
		Page: a.page, Message: r.assistanceText(m.Message, 200), RawMessage: abi.CleanLines(m.Message), RawSchema: bytes.Clone(m.Schema), Fields: a.fields,
		Undeclared: a.host == nil && !slices.Contains(r.plan.manifest.HumanKinds, m.Kind),
	}
	if a.timed {
		q.Timeout = time.Until(a.deadline)
	}
	return q
}

// badChannel is the reason of a run whose owner's channel answered something
// that was not asked.
const badChannel = "interaction_handler_invalid_response"

// answered takes an answer of the owner's channel.
func (r *run) answered(a answer) {
	q := r.asking
	if q == nil || a.to != q || r.latched != nil {
		a.settle(ErrTooLate) // the question was closed before
		return
	}
	if a.err != nil {
		a.settle(ErrTooLate)
		a = answerOf(q, abi.AnswerCancelled, byHost)
	}
	known := a.Status == abi.AnswerSuccess || a.Status == abi.AnswerCancelled || a.Status == abi.AnswerTimeout
	if a.InteractionID != q.id || !known {
		a.settle(ErrTooLate)
		r.latch(&cause{reason: badChannel, origin: "runtime",
			message: "The owner's channel answered another question or with an unknown status."})
		return
	}
	r.closeQuestion(a)
}

// interactionTimeout closes a question whose time is over.
func (r *run) interactionTimeout(now time.Time) {
	if q := r.asking; q != nil && q.timed && !now.Before(q.deadline) {
		r.closeQuestion(answerOf(q, abi.AnswerTimeout, byHost))
	}
}

// closeQuestion records the end of the open interaction, then hands the
// response over: the answer itself is in no event but for R222.
func (r *run) closeQuestion(a answer) {
	q := r.asking
	if q.cancel != nil {
		q.cancel()
	}
	r.clocks.begin(time.Now(), false)
	if a.Status != abi.AnswerSuccess {
		a.Data = nil
		r.gaps.add(r.interactionGap(q, a.Status))
	}
	response := r.response(q, a) // registers the canary before anything is recorded
	r.stage("running")
	events := append(a.lead, r.answerEvents(q, a)...)
	r.submit(&store.Commit{Answered: q.id, Run: ptr(r.rec), Events: events}, func(_ store.Ack, err error) { a.settle(err) })
	r.asking = nil
	q.span.end(nil)
	r.browserAnswered(q)
	if r.paused != nil {
		r.paused.resolved = q.interruptID // node.resumed follows run.resumed
	}
	r.place()
	if r.cancel == nil {
		if !r.barrier() {
			return
		}
		if q.host == nil {
			r.proto.Step(abi.StepAnswer)
		}
	}
	if q.host != nil {
		r.tellHost(q, a.Status)
		return
	}
	r.respond(q, response)
	r.rest(time.Now())
}

// stage moves the run between running and waiting.
func (r *run) stage(phase string) {
	r.rec.Phase = phase
	r.control.phase(phase)
}

func (r *run) interactionGap(q *asking, status string) KnownGap {
	action := abi.ManualActionRequired
	if q.message.Kind == abi.KindCredentials {
		action = abi.RefreshCredentials
	}
	g := KnownGap{Kind: gapInteraction, Reason: "interaction_" + status, Severity: "actionable",
		Message: r.assistanceText(q.message.Message, maxGapText), RecoveryHint: Hint{action, false}}
	if q.message.Stream != "" {
		g.Stream = ptr(q.message.Stream)
	}
	return g
}

// response builds INTERACTION_RESPONSE. Sealed fields become handles, and all
// secret values become protected.
func (r *run) response(q *asking, a answer) abi.Response {
	out := abi.Response{RequestID: q.message.RequestID, Status: a.Status}
	if a.Status != abi.AnswerSuccess {
		return out
	}
	out.Data = map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(a.Data)) { // the order of handles
		raw := a.Data[name]
		f := fieldNamed(q.fields, name)
		switch {
		case f.Sealed:
			raw = abi.AppendQuote(nil, r.sealAnswer(q.message.Kind+"."+name, raw))
			out.SealedFields = append(out.SealedFields, name)
		case f.Secret:
			r.protect(q.message.Kind+"."+name, answerText(raw))
			r.canary.ProtectWord(answerText(raw))
		}
		out.Data[name] = raw
	}
	slices.Sort(out.SealedFields)
	return out
}

// sealAnswer returns a handle for a field of an answer.
func (r *run) sealAnswer(field string, raw json.RawMessage) string {
	var to []abi.Destination
	if s := r.plan.manifest.Sluice; s != nil {
		for _, d := range s.InteractionFields[field].Destinations {
			to = append(to, r.plan.atOwners(d)...)
		}
	}
	return r.seal(field, answerText(raw), to)
}

// answerText is the text of a string, or a number as it is written.
func answerText(raw json.RawMessage) string {
	v, err := abi.Parse(raw, abi.ParseOptions{AnyKind: true})
	if err != nil {
		return ""
	}
	if v.Is(abi.KindNumber) {
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

// respond hands a response to the guest: the reply of its call, or a line.
func (r *run) respond(q *asking, response abi.Response) {
	if r.plan.Transport == "stdio" {
		response.Type = "INTERACTION_RESPONSE"
		if line, err := marshal(response); err == nil {
			r.stdio.feed(append(line, '\n'), "interaction_response")
			r.serveStdin()
		}
		return
	}
	if r.cancel != nil {
		r.replyError(q.call, abi.ECANCELED, "run_cancelled", "the run is being cancelled")
		return
	}
	body, err := marshal(response)
	if err != nil {
		r.latch(hostFault("encode response", err))
		return
	}
	r.reply(q.call, body)
}
