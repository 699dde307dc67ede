package run

import (
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/store"
)

// progress is the rate of PROGRESS on the timeline: a token bucket, and
// per stream the newest message that waits for a token.
type progress struct {
	rate    float64 // tokens per second
	burst   float64
	tokens  float64
	filled  time.Time
	waiting []waitingProgress // by first waiting message
}

type waitingProgress struct {
	message   abi.ProgressMessage
	coalesced int // messages it stands for beyond itself
}

func (p *progress) init(l abi.Limits, now time.Time) {
	p.rate, p.burst = float64(l.ProgressPerSecond), float64(l.ProgressBurst)
	p.tokens, p.filled = p.burst, now
}

// take spends a token if there is one.
func (p *progress) take(now time.Time) bool {
	p.tokens = min(p.burst, p.tokens+now.Sub(p.filled).Seconds()*p.rate)
	p.filled = now
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// progressed is PROGRESS: observability, nothing more. A message that has
// to wait costs next to nothing, for the next one may take its place.
func (op *output) progressed(m *abi.ProgressMessage) {
	if op.canary.LeaksText([]byte(m.Message)) {
		op.outcome.leak("PROGRESS", m.Stream, "/message", nil)
		return
	}
	p := &op.progress
	if len(p.waiting) == 0 && p.take(time.Now()) {
		op.recordProgress(waitingProgress{message: *m})
		return
	}
	i := slices.IndexFunc(p.waiting, func(w waitingProgress) bool { return w.message.Stream == m.Stream })
	if i < 0 {
		p.waiting = append(p.waiting, waitingProgress{message: *m})
		return
	}
	p.waiting[i].message = *m
	p.waiting[i].coalesced++
}

// holdsProgress reports whether messages wait.
func (op *output) holdsProgress() bool { return len(op.progress.waiting) > 0 }

// flushProgress records what waits: what the rate allows, or all of it before
// an event of another type.
func (op *output) flushProgress(now time.Time, all bool) {
	p := &op.progress
	for len(p.waiting) > 0 && (all || p.take(now)) {
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		op.recordProgress(w)
	}
}

func (op *output) recordProgress(w waitingProgress) {
	m := &w.message
	d := data{"message": redact.Progress(op.canary.Text(m.Message))}
	d.set("stream", m.Stream)
	if m.Count != nil {
		d["count"] = *m.Count
	}
	if m.Total != nil {
		d["total"] = *m.Total
	}
	if w.coalesced > 0 {
		d["coalesced"] = w.coalesced
	}
	e := op.journal.streamEvent("run.progress_reported", "in_progress", m.Stream, d)
	e.ActorType, e.ActorID = "connector", string(op.plan.Connector.ID)
	op.commits.submitNow(&store.Commit{Events: []store.Event{e}}, nil)
}
