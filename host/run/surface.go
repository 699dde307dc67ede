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

// probeTime limits the probe of a surface before a question.
const probeTime = 5 * time.Second

// surfaceOf returns the attachments of a question of that kind, which describe the browser surface, and its
// page. The surface is probed while requests to end the run are handled.
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
		_ = bs.loop.whileRunning(ctx, func(ctx context.Context) error { // it returns only what f returns
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
	return []abi.Attachment{bs.shown(a, abi.Attachment{})},
		Page{abi.Cut(abi.Clean(at.Title), 200), abi.Cut(abi.Clean(at.Host), 255)}
}

// shown returns a surface as an item shows it, with the role and label of the item.
func (bs *bindings) shown(a, item abi.Attachment) abi.Attachment {
	out := abi.Attachment{Kind: surfaceKind, Role: item.Role, Label: item.Label, Status: unavailable, Reason: a.Reason}
	out.Role = cmp.Or(out.Role, surfaceRole)
	if a.Status == available && refPattern().MatchString(a.Ref) {
		out.Status, out.Ref, out.Reason = available, a.Ref, ""
	} else if out.Reason == "" {
		out.Reason = "no_surface_registered"
	}
	return out
}

// surfaceLost closes the open question if it needs the surface. An answer that the loop handled before takes
// precedence; one that comes later is too late.
func (bs *bindings) surfaceLost(surfaceID string, p binding.Probe) {
	if bs.surfaceGone {
		return
	}
	bs.surfaceGone, p.OK = true, false
	p.Detail = abi.Cut(redact.URLs(abi.Clean(p.Detail)), 200)
	d := data{"surface_id": surfaceID,
		"browser_surface_probe": map[string]any{"ok": false, "code": p.Code, "detail": p.Detail}}
	gone := abi.Attachment{Status: unavailable, Reason: p.Code}
	q := bs.questions.needsSurface()
	if q == nil || bs.outcome.workerExit() != nil || bs.outcome.over() {
		bs.commits.record(bs.journal.event("run.browser_surface_failed", surfaceFailed, d))
		bs.surfaceChanged(gone)
		return
	}
	d["interaction_id"], d["kind"] = q.id, q.message.Kind
	a := answerOf(q, abi.AnswerCancelled, byHost)
	a.reason, a.leadEvents = "browser_surface_lost",
		q.mark([]store.Event{bs.journal.event("run.browser_surface_lost", surfaceFailed, d)})
	bs.questions.closeQuestion(a)
	bs.surfaceChanged(gone)
}

const surfaceFailed = "surface_failed"

// browserAsked tells the browser which question is open.
func (bs *bindings) browserAsked(q *pendingQuestion) {
	if b := bs.screen(); b != nil {
		b.Asked(q.id, q.message.Kind, q.deadline)
	}
}

// browserAnswered tells the browser that the question is closed.
func (bs *bindings) browserAnswered(q *pendingQuestion) {
	if b := bs.screen(); b != nil {
		b.Answered(q.id)
	}
}

// browserAssisted tells the browser which assistance is open, and remembers how that shows the surface.
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

// browserReleased tells the browser that an assistance is over.
func (bs *bindings) browserReleased(id string) {
	delete(bs.surfaces, id)
	if b := bs.screen(); b != nil {
		b.Assisted(id, nil)
	}
}
