package run

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// questionEvents builds the events of row 15 of the event catalogue: a question in the forms that openwop
// clients, run-protocol clients and the dashboard read.
func (qs *questions) questionEvents(a *pendingQuestion) []store.Event {
	m := a.message
	message := cmp.Or(qs.canary.Assistance(m.Message, 200), "Owner assistance requested.")
	key := abi.Cut(string(qs.id)+":"+qs.plan.manifest.Node()+":"+a.id, 256)
	kind, payload := qs.interruptData(a, message)

	requested := data{"kind": kind, "key": key, "data": payload} // takes no further members
	if a.schema != nil && kind == "clarification" {
		requested["resumeSchema"] = a.schema
	}
	required := data{"kind": m.Kind, "message": message, "stream": nullable(m.Stream)}
	assist := data{
		"assistance_request_id": a.id, "kind": m.Kind, "message": message, "stream": nullable(m.Stream),
		"progress_posture": abi.PostureBlocked, "owner_action": abi.ActionProvideValue,
		"response_obligation": abi.ObligationResponseRequired, "sensitivity": a.sensitivity(), "attachments": a.attachments,
	}
	if m.Kind == abi.KindManualAction {
		assist["owner_action"] = abi.ActionOperateAttachment
	} else {
		required["schema"], assist["input_schema"] = a.schema, a.schema
	}
	if m.TimeoutSeconds != nil {
		required["timeout_seconds"], assist["timeout_seconds"] = *m.TimeoutSeconds, *m.TimeoutSeconds
		requested["timeoutMs"] = seconds(*m.TimeoutSeconds).Milliseconds()
	}
	if a.host == nil && !slices.Contains(qs.plan.manifest.HumanKinds, m.Kind) {
		required["undeclared_kind"] = true
	}
	for _, d := range []data{required, assist} {
		d["outlives_host"] = a.pending.Journal > 0
		d.set("host_bound", a.pending.HostBound)
	}
	events := []store.Event{qs.journal.bare("interrupt.requested", "started", requested)}
	if kind == "clarification" {
		events = append(events, qs.journal.nodeEvent("clarification.requested", "started",
			data{"interruptId": a.interruptID, "questions": payload["questions"]}))
	} else {
		events = append(events, qs.journal.nodeEvent("approval.requested", "started", data{
			"interruptId": a.interruptID, "artifactId": a.interruptID, "artifactType": payload["artifactType"],
			"title": message, "actions": a.decisions("edit"),
		}))
	}
	events = append(events,
		qs.journal.event("run.interaction_required", "started", required),
		qs.journal.event("run.assistance_requested", "started", assist),
		qs.journal.nodeEvent("node.suspended", "started", data{"interruptId": a.interruptID, "kind": kind, "key": key}),
	)
	return a.mark(events)
}

// interruptData maps an interaction to an openwop interrupt.
func (qs *questions) interruptData(a *pendingQuestion, message string) (kind string, payload map[string]any) {
	switch a.message.Kind {
	case abi.KindManualAction, abi.KindApproval:
		typ := "approval"
		if a.message.Kind == abi.KindManualAction {
			typ = "manual-action"
		}
		return "approval", map[string]any{
			"artifactId": a.interruptID, "artifactType": typ, "title": message,
			"actions": a.decisions(abi.DecisionEdit), "requiredApprovals": 1,
		}
	}
	questions := []map[string]any{}
	for _, name := range sortedKeys(a.schema.Properties) {
		f := a.schema.Properties[name]
		text := cmp.Or(f.Title, name)
		questions = append(questions, map[string]any{"id": name, "question": text, "schema": f})
	}
	return "clarification", map[string]any{"questions": questions, "contextType": a.message.Kind}
}

// answerEvents builds the events of row 16: how a question ended, in the same forms.
func (qs *questions) answerEvents(q *pendingQuestion, a answer) []store.Event {
	m := q.message
	kind, _ := qs.interruptData(q, "")
	now := store.Time(store.Now(qs.deps.Store))
	resolved := data{
		"interruptId": q.interruptID, "kind": kind, "status": a.Status,
		"resolvedBy": a.by, "resolvedAt": now, "resumeValue": nil,
	}
	var specific *store.Event
	switch {
	case kind == "approval" && a.Status == abi.AnswerTimeout:
		specific = new(qs.journal.nodeEvent("approval.received", "timeout", data{"action": "timeout", "decidedAt": now}))
	case a.by == byHost: // nobody decided
	case kind == "approval":
		value := qs.approvalValue(m.Kind, a)
		resolved["resumeValue"] = value
		d := data{"action": value["action"], "decidedBy": a.by, "decidedAt": now}
		if c, ok := value["comment"]; ok {
			d["comment"] = c
		}
		specific = new(qs.journal.nodeEvent("approval.received", a.Status, d))
	case a.Status == abi.AnswerSuccess:
		answers := qs.loggedAnswers(q, a)
		resolved["resumeValue"] = "[REDACTED]"
		if m.Kind == abi.KindClarification {
			resolved["resumeValue"] = map[string]any{"answers": answers}
		}
		specific = new(qs.journal.nodeEvent("clarification.resolved", a.Status, data{"answers": answers, "answeredBy": a.by}))
	}
	events := []store.Event{qs.journal.nodeEvent("interrupt.resolved", a.Status, resolved)}
	if specific != nil {
		events = append(events, *specific)
	}
	end := map[string]string{abi.AnswerSuccess: "resolved", abi.AnswerCancelled: "cancelled",
		abi.AnswerTimeout: "timed_out"}[a.Status]
	assist := data{"assistance_request_id": q.id, "kind": m.Kind, "status": end, "response_status": a.Status,
		"stream": nullable(m.Stream)}
	assist.set("reason", a.reason)
	events = append(events,
		qs.journal.event("run.interaction_completed", a.Status,
			data{"kind": m.Kind, "status": a.Status, "stream": nullable(m.Stream)}),
		qs.journal.event("run.assistance_"+end, end, assist),
	)
	if qs.outcome.ready() && qs.outcome.workerExit() == nil && !qs.pause.active() {
		events = append(events, qs.journal.nodeEvent("node.resumed", "in_progress", data{"interruptId": q.interruptID}))
	}
	if a.by != byHost {
		for i := range events {
			events[i] = by(a.by, events[i])
		}
	}
	return q.mark(events)
}

// approvalValue returns the decision for the log, without the text that an owner edited. A cancelled question
// counts as rejected.
func (qs *questions) approvalValue(kind string, a answer) map[string]any {
	value := map[string]any{"action": abi.DecisionAccept}
	if a.Status != abi.AnswerSuccess {
		value["action"] = abi.DecisionReject
	}
	if kind == abi.KindManualAction {
		return value
	}
	if text, ok := textOf(a.Data["action"]); ok && slices.Contains(abi.Decisions, text) {
		value["action"] = text
	}
	if text, ok := textOf(a.Data["comment"]); ok && text != "" {
		value["comment"] = qs.canary.Assistance(text, 200)
	}
	return value
}

// loggedAnswers returns the answers of a clarification for the log, with secret ones redacted. All answers of
// other kinds are redacted.
func (qs *questions) loggedAnswers(q *pendingQuestion, a answer) map[string]any {
	out := map[string]any{}
	for _, f := range q.fields {
		raw, ok := a.Data[f.Name]
		if !ok {
			continue
		}
		out[f.Shown] = "[REDACTED]"
		if q.message.Kind != abi.KindClarification || f.Secret || f.Sealed || f.File {
			continue
		}
		if text, isText := textOf(raw); isText {
			out[f.Shown] = qs.canary.Assistance(text, 200)
		} else if len(raw) <= 200 {
			out[f.Shown] = qs.canary.JSON(raw)
		}
	}
	return out
}

func textOf(raw json.RawMessage) (string, bool) {
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{AnyKind: true})
	if err != nil {
		return "", false
	}
	return v.Text()
}
