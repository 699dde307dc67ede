package browser

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/store"
)

// A ViewedSession is a browser session that its owner can view. It passes what the run tells the session on to the
// live views.
type ViewedSession struct {
	*Session
	views *view.Views

	mu      sync.Mutex // guards what follows
	runID   string
	run     *view.Run
	surface string // the id of the surface on show
}

// ViewedSession returns the binding of one run, which shows itself in views. It starts nothing.
func (h *Host) ViewedSession(o SessionOptions, views *view.Views) *ViewedSession {
	l := &ViewedSession{views: views}
	o.Notice = l.notice
	l.Session = newSession(h, o)
	return l
}

// settling bounds how long a call waits for the end of the owner's lease.
const settling = 5 * time.Second

// notReady is the code of a surface that was closed on purpose.
const notReady = "browser_surface_not_ready"

// Begin implements binding.Reporter.
func (l *ViewedSession) Begin(runID string, back binding.Run) {
	l.Session.Begin(runID, back)
	r := l.views.Begin(runID, l.Session, back.Event)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run, l.runID = r, runID
}

// notice passes a notice on to the viewers.
func (l *ViewedSession) notice(code, name string) {
	if r := l.shown(); r != nil {
		r.Notice(code, name)
	}
}

// Handle implements binding.Binding. A call waits for a lease that is about to end, and shows a surface that it
// opens.
func (l *ViewedSession) Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	if r := l.shown(); r != nil {
		wait, cancel := context.WithTimeout(ctx, settling)
		_ = r.Settled(wait) // the session answers owner_in_control if it is too late
		cancel()
	}
	defer l.look()
	return l.Session.Handle(ctx, call, payload)
}

func (l *ViewedSession) shown() *view.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

// look shows the current surface to the viewers.
func (l *ViewedSession) look() {
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
func (l *ViewedSession) reason() string {
	if a := l.Surface(); a.Ref != "" && a.Reason != "" && a.Reason != notReady {
		return view.ReasonLost
	}
	return view.ReasonEnded
}

// Asked implements binding.Screen.
func (l *ViewedSession) Asked(id, kind string, until time.Time) {
	l.look() // a session flow asks while its surface is being opened
	if r := l.shown(); r != nil {
		r.Asked(id, kind)
	}
	l.Session.Asked(id, kind, until)
}

// Answered implements binding.Screen.
func (l *ViewedSession) Answered(id string) {
	if r := l.shown(); r != nil {
		r.Answered(id, l.reason())
	}
	l.Session.Answered(id)
}

// Assisted implements binding.Screen. Viewers know an assistance by its id in the API.
func (l *ViewedSession) Assisted(id string, a *abi.AssistanceMessage) {
	l.look()
	if r := l.shown(); r != nil {
		r.Assisted(l.o.AssistanceID(store.RunID(l.runID), id), a != nil && a.OwnerAction == abi.ActionOperateAttachment)
	}
	l.Session.Assisted(id, a)
}

// Close implements binding.Binding. It ends the views before the browser.
func (l *ViewedSession) Close(ctx context.Context) error {
	if r := l.shown(); r != nil {
		r.End()
	}
	return l.Session.Close(ctx)
}

var (
	_ binding.Screen = (*ViewedSession)(nil)
	_ view.Surface   = (*Session)(nil)
)
