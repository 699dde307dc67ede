//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// take performs an admitted message and adds it to the transcript. The message does not
// alias the request, so it may be kept.
func (h *host) take(m abi.Message) (reply []byte, err error) {
	r := h.result
	switch m := m.(type) {
	case *abi.StateMessage:
		cursor := m.Cursor
		if cursor == nil {
			cursor = json.RawMessage("null")
		}
		r.States[m.Stream] = cursor
		h.line("%s", joined("STATE", m.Stream, string(cursor)))
	case *abi.ProgressMessage:
		r.Progress = append(r.Progress, *m)
		h.line("%s", joined("PROGRESS", m.Stream, quote(m.Message), counts(m.Count, m.Total)))
	case *abi.SkipMessage:
		r.Skips = append(r.Skips, *m)
		h.line("%s", joined("SKIP_RESULT", m.Stream, m.Reason, quoted(m.Message), hint(m.RecoveryHint)))
	case *abi.GapMessage:
		r.Gaps = append(r.Gaps, *m)
		h.line("%s", joined("DETAIL_GAP", m.Stream, m.ParentStream, m.RecordKey, m.Reason))
	case *abi.RecoveredMessage:
		r.Recovered = append(r.Recovered, *m)
		h.line("%s", joined("DETAIL_GAP_RECOVERED", m.Stream, m.GapID))
	case *abi.CoverageMessage:
		r.Coverage = append(r.Coverage, *m)
		h.line("DETAIL_COVERAGE %s of %s required=%d hydrated=%d gaps=%d", m.Stream, m.StateStream,
			len(m.RequiredKeys), len(m.HydratedKeys), len(m.GapKeys))
	case *abi.AssistanceMessage:
		r.Assistances = append(r.Assistances, Assistance{AssistanceMessage: *m})
		h.line("%s", joined("ASSISTANCE", m.ID, m.ProgressPosture+"/"+m.OwnerAction, m.Stream, quote(m.Message)))
		return json.Marshal(map[string]string{"assistance_request_id": m.ID})
	case *abi.AssistanceStatusMessage:
		h.close(m.ID, m.Status)
		h.line("%s", joined("ASSISTANCE_STATUS", m.ID, m.Status, quoted(m.Message)))
	case *abi.InteractionMessage:
		return h.ask(m)
	case *abi.DoneMessage:
		r.Done = m
		h.line("%s", joined("DONE", m.Status, m.ReportedRecords, fault(m.Error)))
	default:
		h.line("%s", m.Type())
	}
	return nil, nil
}

// close ends an open assistance.
func (h *host) close(id, status string) {
	h.protocol.CloseAssistance(id)
	for i := range slices.Backward(h.result.Assistances) {
		if a := &h.result.Assistances[i]; a.ID == id && a.Status == "" {
			a.Status = status
			return
		}
	}
}

// ask puts a question to the owner. It supersedes assistances that ask something of the
// owner.
func (h *host) ask(q *abi.InteractionMessage) ([]byte, error) {
	for _, a := range h.protocol.OpenAssistances() {
		if a.Message.OwnerAction != abi.ActionNone && (a.Stream == "" || a.Stream == q.Stream) {
			h.close(a.ID, guest.Escalated)
			h.line("ASSISTANCE_STATUS %s escalated", a.ID)
		}
	}
	h.result.Interactions = append(h.result.Interactions, Interaction{InteractionMessage: *q})
	a := h.answer(q)
	if a.Status == "" {
		a.Status = abi.AnswerSuccess
	}
	h.result.Interactions[len(h.result.Interactions)-1].Status = a.Status
	h.line("%s", joined("INTERACTION", q.Kind, q.RequestID, q.Stream, quote(q.Message), "->", a.Status))
	if v := h.protocol.Step(abi.StepAnswer); v != nil {
		return nil, v
	}
	return h.response(q, a)
}

// side serves message and log, which are not protocol messages.
func (h *host) side(call abi.Call, request []byte) error {
	if v := h.protocol.Step(abi.StepSide); v != nil {
		return h.violate(v)
	}
	var m struct {
		Level, Message, Chunk string
		Fields                json.RawMessage
	}
	if err := json.Unmarshal(request, &m); err != nil {
		return guest.NewError(abi.EINVAL, "malformed", err.Error())
	}
	if call == abi.CallLog {
		h.result.Logs = append(h.result.Logs, Log{m.Level, m.Message, m.Fields})
		h.line("%s", joined("LOG", m.Level, quote(m.Message)))
		return nil
	}
	h.result.Text = append(h.result.Text, m.Chunk)
	h.line("%s", joined("MESSAGE", quote(m.Chunk)))
	return nil
}

// joined joins the non-empty words in one line and shortens it.
func joined(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		if w == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	const longest = 300
	if s := abi.Cut(b.String(), longest); len(s) < b.Len() {
		return s + "…"
	}
	return b.String()
}

func quote(s string) string { return strconv.Quote(s) }

// quoted is quote that leaves "" empty.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return quote(s)
}

func counts(count, total *float64) string {
	number := func(f *float64) string {
		if f == nil {
			return "?"
		}
		return strconv.FormatFloat(*f, 'f', -1, 64)
	}
	if count == nil && total == nil {
		return ""
	}
	return number(count) + "/" + number(total)
}

func hint(h *abi.RecoveryHint) string {
	if h == nil {
		return ""
	}
	return "hint=" + h.Action
}

func fault(e *abi.DoneError) string {
	if e == nil {
		return ""
	}
	retryable := ""
	if e.Retryable != nil && *e.Retryable {
		retryable = "retryable"
	}
	return joined(e.Code, quote(e.Message), retryable, hint(e.RecoveryHint))
}
