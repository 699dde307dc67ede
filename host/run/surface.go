package run

import (
	"cmp"
	"context"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

const (
	surfaceKind = "browser_surface"
	surfaceRole = "streaming_companion"
	available   = "available"
	unavailable = "unavailable"
)

// probeTime bounds the probe before a question.
const probeTime = 5 * time.Second

// surfaceOf is what a question of that kind says of a browser surface, and of its page. A surface is probed first, while
// cancellation is heard; its page is asked meanwhile.
func (bs *bindings) surfaceOf(kind string) ([]abi.Attachment, Page) {
	b := bs.screen()
	registered := b != nil && b.Registered()
	if kind != abi.KindManualAction && (kind != abi.KindOTP || !registered) {
		return []abi.Attachment{}, Page{}
	}
	var at Page
	a := abi.Attachment{Status: unavailable, Reason: "no_surface_registered"}
	switch {
	case registered:
		ctx, cancel := context.WithTimeout(bs.ctx, probeTime)
		defer cancel()
		probed := make(chan abi.Attachment, 1)
		_ = bs.loop.meanwhile(ctx, func(ctx context.Context) error { // it only hands back what its function returns
			page := make(chan Page, 1)
			go func() {
				title, host := b.Page(ctx)
				page <- Page{title, host}
			}()
			a := b.Probe(ctx)
			at = <-page
			probed <- a
			return nil
		})
		a = <-probed
	case b != nil:
		a = b.Surface()
	}
	return []abi.Attachment{bs.shown(a, abi.Attachment{})}, Page{abi.Cut(abi.Clean(at.Title), 200), abi.Cut(abi.Clean(at.Host), 255)}
}

// shown is a surface as an item shows it, in the words of the item.
func (bs *bindings) shown(a, item abi.Attachment) abi.Attachment {
	out := abi.Attachment{Kind: surfaceKind, Role: item.Role, Label: item.Label, Status: unavailable, Reason: a.Reason}
	out.Role = cmp.Or(out.Role, surfaceRole)
	if a.Status == available && refPattern.MatchString(a.Ref) {
		out.Status, out.Ref, out.Reason = available, a.Ref, ""
	} else if out.Reason == "" {
		out.Reason = "no_surface_registered"
	}
	return out
}

// surfaceLost closes a question that needs the surface. The loop decides who was first: a question that an answer
// closed before is open no more, and one that is closed here takes none.
func (bs *bindings) surfaceLost(surfaceID string, p binding.Probe) {
	if bs.lost {
		return
	}
	bs.lost, p.OK = true, false
	p.Detail = abi.Cut(redact.URLs(abi.Clean(p.Detail)), 200)
	d := data{"surface_id": surfaceID, "browser_surface_probe": map[string]any{"ok": false, "code": p.Code, "detail": p.Detail}}
	gone := abi.Attachment{Status: unavailable, Reason: p.Code}
	q := bs.questions.watched()
	if q == nil || bs.outcome.left() != nil || bs.outcome.over() {
		bs.commits.record(bs.journal.event("run.browser_surface_failed", surfaceFailed, d))
		bs.surfaceChanged(gone)
		return
	}
	d["interaction_id"], d["kind"] = q.id, q.message.Kind
	a := answerOf(q, abi.AnswerCancelled, byHost)
	a.reason, a.lead = "browser_surface_lost", q.mark([]store.Event{bs.journal.event("run.browser_surface_lost", surfaceFailed, d)})
	bs.questions.closeQuestion(a)
	bs.surfaceChanged(gone)
}

const surfaceFailed = "surface_failed"

// browserAsked tells the binding of a question that is open.
func (bs *bindings) browserAsked(q *asking) {
	if b := bs.screen(); b != nil {
		b.Asked(q.id, q.message.Kind, q.deadline)
	}
}

// browserAnswered tells it that the question is closed.
func (bs *bindings) browserAnswered(q *asking) {
	if b := bs.screen(); b != nil {
		b.Answered(q.id)
	}
}

// browserAssisted tells the binding of an assistance that is open, and remembers
// what it says of the surface.
func (bs *bindings) browserAssisted(m *abi.AssistanceMessage) {
	b := bs.screen()
	if b == nil {
		return
	}
	for _, a := range bs.assistances.attachments(m.Attachments) {
		if a.Kind == surfaceKind {
			bs.surfaces[m.ID] = a
		}
	}
	copied := *m
	b.Assisted(m.ID, &copied)
}

// browserReleased tells it that an assistance is over.
func (bs *bindings) browserReleased(id string) {
	delete(bs.surfaces, id)
	if b := bs.screen(); b != nil {
		b.Assisted(id, nil)
	}
}
