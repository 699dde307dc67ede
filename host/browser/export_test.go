package browser

import (
	"context"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// A TestWorker stands for the engine.
type TestWorker struct {
	engine.Options
	DoVerb func(ctx context.Context, r *engine.Request) (any, *engine.Refusal)
	Calls  []string
}

func (w *TestWorker) Do(ctx context.Context, r *engine.Request) (any, *engine.Refusal) {
	return w.DoVerb(ctx, r)
}
func (w *TestWorker) Pause()    { w.Calls = append(w.Calls, "pause") }
func (w *TestWorker) Resume()   { w.Calls = append(w.Calls, "resume") }
func (w *TestWorker) Released() { w.Calls = append(w.Calls, "released") }
func (w *TestWorker) Close()    { w.Calls = append(w.Calls, "close") }

// WithEngine has a host use what make returns instead of the engine.
func (h *Host) WithEngine(of func(engine.Options) *TestWorker) {
	h.engine = func(o engine.Options) worker { return of(o) }
}

// Hide is what replies go through.
func (s *Session) Hide(text []byte) []byte { return s.seals.hide(text) }

// Undecodable counts what a browser of the host sent and nobody understood.
func (h *Host) Undecodable(events int64) { h.undecodable(events) }

// Allowed judges addresses.
var Allowed = allowed

// LastElement cuts names of files.
var LastElement = lastElement

// OpenWithin opens what a browser wrote.
var OpenWithin = openWithin
