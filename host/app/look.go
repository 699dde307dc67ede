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

// A lookedAt is a browser session that its owner can view. It passes what the run tells the session on to the
// live views.
type lookedAt struct {
	*browser.Session
	views *liveview.Views

	mu      sync.Mutex // guards what follows
	runID   string
	run     *liveview.Run
	surface string // the id of the surface on show
}

// settling bounds how long a call waits for the end of the owner's lease.
const settling = 5 * time.Second

// notReady is the code of a surface that was closed on purpose.
const notReady = "browser_surface_not_ready"

// liveViews returns the views of the browsers of this host, or empty ones if its browsers are not its own.
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

// notice passes a notice on to the viewers.
func (l *lookedAt) notice(code, name string) {
	if r := l.shown(); r != nil {
		r.Notice(code, name)
	}
}

// Handle implements binding.Binding. A call waits for a lease that is about to end, and shows a surface that it
// opens.
func (l *lookedAt) Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	if r := l.shown(); r != nil {
		wait, cancel := context.WithTimeout(ctx, settling)
		_ = r.Settled(wait) // the session answers owner_in_control if it is too late
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

// look shows the current surface to the viewers.
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
		<-gone // at the latest when the session ends
		reason := l.reason()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.surface == id {
			r.Down(reason)
		}
	}()
}

// reason returns why views end now. If the surface was lost, viewers are told of the loss.
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

// Assisted implements binding.Screen. Viewers know an assistance by its id in the API.
func (l *lookedAt) Assisted(id string, a *abi.AssistanceMessage) {
	l.look()
	if r := l.shown(); r != nil {
		r.Assisted(timeline.AssistanceID(store.RunID(l.runID), id), a != nil && a.OwnerAction == abi.ActionOperateAttachment)
	}
	l.Session.Assisted(id, a)
}

// Close implements binding.Binding. It ends the views before the browser.
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
