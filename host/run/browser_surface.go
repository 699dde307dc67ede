package run

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/abi"
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

// surfaceOf is what a question of that kind says of a browser surface (R122, and
// §15.3 for otp), and of its page. A surface is probed first, while
// cancellation is heard; its page is asked meanwhile.
func (br *browsing) surfaceOf(kind string) ([]abi.Attachment, Page) {
	b := br.open()
	registered := b != nil && b.Registered()
	if kind != abi.KindManualAction && (kind != abi.KindOTP || !registered) {
		return []abi.Attachment{}, Page{}
	}
	var at Page
	a := abi.Attachment{Status: unavailable, Reason: "no_surface_registered"}
	switch {
	case registered:
		ctx, cancel := context.WithTimeout(br.ctx, probeTime)
		defer cancel()
		probed := make(chan abi.Attachment, 1)
		_ = br.loop.meanwhile(ctx, func(ctx context.Context) error { // it only hands back what its function returns
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
	return []abi.Attachment{br.shown(a, abi.Attachment{})}, Page{abi.Cut(abi.Clean(at.Title), 200), abi.Cut(abi.Clean(at.Host), 255)}
}

// shown is a surface as an item shows it, in the words of the item.
func (b *browsing) shown(a, item abi.Attachment) abi.Attachment {
	out := abi.Attachment{Kind: surfaceKind, Role: item.Role, Label: item.Label, Status: unavailable, Reason: a.Reason}
	if out.Role == "" {
		out.Role = surfaceRole
	}
	if a.Status == available && refPattern.MatchString(a.Ref) {
		out.Status, out.Ref, out.Reason = available, a.Ref, ""
	} else if out.Reason == "" {
		out.Reason = "no_surface_registered"
	}
	return out
}

// surfaceChanged tells what open items say of the surface from now on.
func (br *browsing) surfaceChanged(a abi.Attachment) {
	br.questions.surfaceChanged(a)
	for _, o := range br.proto.OpenAssistances() {
		before, ok := br.surfaces[o.ID]
		now := br.shown(a, before)
		if !ok || now == before {
			continue
		}
		attachments := br.assistances.attachments(o.Message.Attachments)
		for i := range attachments {
			if attachments[i].Kind == surfaceKind {
				attachments[i] = br.shown(a, attachments[i])
			}
		}
		br.surfaces[o.ID] = now
		d := data{"assistance_request_id": br.canary.Text(o.ID), "attachments": attachments}
		br.commits.submit(&store.Commit{Events: []store.Event{br.journal.streamEvent("run.assistance_updated", "in_progress", o.Stream, d)}}, nil)
	}
}

// surfaceChanged tells what the open question says of the surface from now on.
func (qs *questions) surfaceChanged(a abi.Attachment) {
	q := qs.asking
	if q == nil || len(q.attachments) != 1 {
		return
	}
	if now := qs.browser.shown(a, q.attachments[0]); now != q.attachments[0] {
		q.attachments = []abi.Attachment{now}
		e := qs.journal.event("run.assistance_updated", "in_progress", data{"assistance_request_id": q.id, "attachments": q.attachments})
		qs.commits.submit(&store.Commit{Events: q.mark([]store.Event{e})}, nil)
	}
}

// watched reports whether the loss of a surface ends a question.
func (q *asking) watched() bool {
	return q != nil && (q.message.Kind == abi.KindManualAction || q.message.Kind == abi.KindOTP)
}

// surfaceLost is R148. The loop decides who was first: a question that an answer
// closed before is open no more, and one that is closed here takes none.
func (br *browsing) surfaceLost(surfaceID string, p BrowserProbe) {
	b := br
	if b.lost {
		return
	}
	b.lost, p.OK = true, false
	p.Detail = abi.Cut(redact.URLs(abi.Clean(p.Detail)), 200)
	d := data{"surface_id": surfaceID, "browser_surface_probe": map[string]any{"ok": false, "code": p.Code, "detail": p.Detail}}
	gone := abi.Attachment{Status: unavailable, Reason: p.Code}
	q := br.questions.watched()
	if q == nil || br.outcome.left() != nil || br.outcome.over() {
		br.commits.submit(&store.Commit{Events: []store.Event{br.journal.event("run.browser_surface_failed", surfaceFailed, d)}}, nil)
		br.surfaceChanged(gone)
		return
	}
	d["interaction_id"], d["kind"] = q.id, q.message.Kind
	a := answerOf(q, abi.AnswerCancelled, byHost)
	a.reason, a.lead = "browser_surface_lost", q.mark([]store.Event{br.journal.event("run.browser_surface_lost", surfaceFailed, d)})
	br.questions.closeQuestion(a)
	br.surfaceChanged(gone)
}

const surfaceFailed = "surface_failed"
