package app

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	liveview "github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A lookedAt is a binding whose browser its owner may look at: it tells the views of the host
// what the run tells the binding.
type lookedAt struct {
	*browser.Session
	views *liveview.Views

	mu      sync.Mutex // guards what follows
	runID   string
	run     *liveview.Run
	surface string // that is shown
}

// settling bounds how long a run waits for the owner's lease to end.
const settling = 5 * time.Second

// notReady is the code of a surface that was closed on purpose.
const notReady = "browser_surface_not_ready"

// liveViews are the views of a host: those of its browsers, if they are its own.
func liveViews(h *directory) *liveview.Views {
	if b, ok := h.Options.Browsers.(*browsers); ok {
		return b.views
	}
	return liveview.New()
}

// Begin implements binding.Speaker.
func (l *lookedAt) Begin(runID string, back binding.Run) {
	l.Session.Begin(runID, back)
	r := l.views.Begin(runID, l.Session, back.Event)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run, l.runID = r, runID
}

// notice tells whoever looks.
func (l *lookedAt) notice(code, name string) {
	if r := l.shown(); r != nil {
		r.Notice(code, name)
	}
}

// Handle implements binding.Binding. A verb that comes while a lease is about to end
// waits for that, and a surface that it opened can be looked at from then on.
func (l *lookedAt) Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	if r := l.shown(); r != nil {
		wait, cancel := context.WithTimeout(ctx, settling)
		_ = r.Settled(wait) // too late is owner_in_control
		cancel()
	}
	defer l.look()
	return l.Session.Handle(ctx, call, payload)
}

func (l *lookedAt) shown() *liveview.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

// look shows the surface that there is now.
func (l *lookedAt) look() {
	screen, id, gone := l.Screen()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil || screen == nil || id == l.surface {
		return
	}
	l.surface = id
	r := l.run
	r.Up(screen)
	go func() {
		<-gone // it ends with the session at the latest
		reason := l.reason()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.surface == id {
			r.Down(reason)
		}
	}()
}

// reason is why views end now: the loss of a surface closes its question too, and whoever
// looked is told of the loss.
func (l *lookedAt) reason() string {
	if a := l.Surface(); a.Ref != "" && a.Reason != "" && a.Reason != notReady {
		return liveview.ReasonLost
	}
	return liveview.ReasonEnded
}

// Asked implements binding.Screen.
func (l *lookedAt) Asked(id, kind string, until time.Time) {
	l.look() // a session flow asks while its surface is being opened
	if r := l.shown(); r != nil {
		r.Asked(id, kind)
	}
	l.Session.Asked(id, kind, until)
}

// Answered implements binding.Screen.
func (l *lookedAt) Answered(id string) {
	if r := l.shown(); r != nil {
		r.Answered(id, l.reason())
	}
	l.Session.Answered(id)
}

// Assisted implements binding.Screen. Owners know an assistance by the name that the
// API has for it.
func (l *lookedAt) Assisted(id string, a *abi.AssistanceMessage) {
	l.look()
	if r := l.shown(); r != nil {
		r.Assisted(timeline.AssistanceID(store.RunID(l.runID), id), a != nil && a.OwnerAction == abi.ActionOperateAttachment)
	}
	l.Session.Assisted(id, a)
}

// Close implements binding.Binding: views end before the browser does.
func (l *lookedAt) Close(ctx context.Context) error {
	if r := l.shown(); r != nil {
		r.End()
	}
	return l.Session.Close(ctx)
}

var (
	_ Browser          = (*lookedAt)(nil)
	_ liveview.Surface = (*browser.Session)(nil)
)
