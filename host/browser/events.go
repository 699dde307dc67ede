package browser

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

// questions look after the surface while an owner is asked to use it.
type questions struct {
	s *Session

	mu    sync.Mutex         // guards what follows
	open  map[string]bool    // interactions; true for those that are watched
	end   context.CancelFunc // of the probing; nil while there is none
	shown *abi.Attachment    // what the run was told last; nil for nothing
	last  *fleet.Probe       // of the latest probe; nil before the first
}

// Asked tells of an interaction of the owner's that is open. manual_action and otp
// are watched where a surface is registered. It returns at once.
func (s *Session) Asked(id, kind string, _ time.Time) {
	s.mu.Lock()
	s.establishment.pause("interaction:"+id, true, 0)
	s.mu.Unlock()
	o := s.current()
	defer s.asked(o)
	watched := (kind == "manual_action" || kind == "otp") && o != nil && o.Fault() == nil
	w := s.questions
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[id] = watched
	if !watched || w.end != nil || s.life.Err() != nil {
		return
	}
	shown := w.attachment(o)
	w.shown = &shown
	ctx, end := context.WithCancel(s.life)
	w.end = end
	s.work.Go(func() {
		o.Watch(ctx, s.host.o.ProbeInterval, func(p fleet.Probe) { w.told(o, p) })
	})
}

// Answered tells that an interaction is over.
func (s *Session) Answered(id string) {
	s.mu.Lock()
	s.establishment.pause("interaction:"+id, false, 0)
	s.mu.Unlock()
	w := s.questions
	defer s.asked(s.current())
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, id)
	for _, watched := range w.open {
		if watched {
			return
		}
	}
	if w.end != nil {
		w.end()
	}
	w.end, w.shown, w.last = nil, nil, nil
}

// asked has dialogs follow the interactions that are open.
func (s *Session) asked(o *opened) {
	if o != nil && o.Fault() == nil {
		s.dialogs(o)
	}
}

// asking reports whether an interaction is open.
func (w *questions) asking() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open) > 0
}

// told hears of a probe, and tells the run if items show something else now.
func (w *questions) told(o *opened, p fleet.Probe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		return
	}
	w.last = &p
	now := w.attachment(o)
	if w.shown == nil || *w.shown != now {
		w.shown = &now
		w.s.back.Attachment(now)
	}
}

// attachment is what is known. The caller holds mu.
func (w *questions) attachment(o *opened) abi.Attachment {
	a := abi.Attachment{Kind: "browser_surface", Role: "streaming_companion", Status: "available"}
	if o == nil {
		a.Status, a.Reason = "unavailable", fleet.CodeNoSurface
		return a
	}
	a.Ref = o.ID()
	p := w.last
	switch o.State() {
	case fleet.Lost:
		p = o.Fault()
	case fleet.Closing, fleet.Closed:
		p = &fleet.Probe{Code: fleet.CodeNotReady}
	}
	if p != nil && !p.OK {
		a.Status, a.Reason = "unavailable", p.Code
	}
	return a
}

// Surface is the attachment that an item has now, as far as is known.
func (s *Session) Surface() abi.Attachment {
	s.mu.Lock()
	o, failed := s.opened, s.failed
	s.mu.Unlock()
	s.questions.mu.Lock()
	defer s.questions.mu.Unlock()
	a := s.questions.attachment(o)
	if o == nil && failed {
		a.Reason = fleet.CodeStartFailed
	}
	return a
}

// Probe is Surface behind one probe, for an interaction that is about to open.
// It ends with ctx.
func (s *Session) Probe(ctx context.Context) abi.Attachment {
	if o := s.current(); o != nil && o.Fault() == nil {
		p := o.Probe(ctx)
		s.questions.mu.Lock()
		s.questions.last = &p
		s.questions.mu.Unlock()
	}
	return s.Surface()
}

// titleLimit bounds the read of a title.
const titleLimit = 2 * time.Second

// Page is what the owner is told of the page that a question is about. The host is what
// this host knows; the title is asked for, unless a dialog keeps the page from
// answering, and a page that does not answer in time has none.
func (s *Session) Page(ctx context.Context) (title, host string) {
	screen, _, _ := s.Screen()
	if screen == nil {
		return "", ""
	}
	f := screen.Facts()
	if f.Dialog != nil {
		return "", f.Host
	}
	limit, stop := context.WithTimeout(ctx, titleLimit)
	defer stop()
	title, err := screen.Title(limit)
	if err != nil {
		if limit.Err() != nil && ctx.Err() == nil {
			s.host.o.Log.Info("the title of a page was not read in time", "run", s.runID, "limit", titleLimit)
		}
		return "", f.Host
	}
	return s.seals.Hide(title), f.Host
}

// lost is told by the surface, once, that it is gone.
func (s *Session) lost(id string, p fleet.Probe) {
	s.back.Lost(id, binding.Probe(p))
}

// surfaceEvent puts a step of the surface's life into the run's timeline.
func (s *Session) surfaceEvent(e fleet.Event) {
	data := map[string]any{"surface_id": e.ID, "profile": e.Profile}
	if e.Code != "" {
		data["code"] = e.Code
	}
	if e.Restored {
		data["profile_restored"] = true
	}
	if e.Probe != nil {
		data["browser_surface_probe"] = e.Probe
	}
	status := strings.TrimPrefix(e.Type, "run.browser_surface_")
	switch e.Type {
	case fleet.EventFailed, fleet.EventProbeFailed:
		status = "failed"
	}
	s.tracing.traceNote("event", map[string]any{"type": e.Type, "data": data})
	s.back.Event(e.Type, status, data)
}

// signal puts a finished action into the timeline: its fields, role and
// url_host, and nothing else.
func (s *Session) signal(a engine.Signal) {
	text, err := json.Marshal(a)
	if err == nil {
		text, err = abi.CleanJSON(text) // an element has the name that its page gave it
	}
	var data map[string]any
	if err == nil {
		err = json.Unmarshal(text, &data)
	}
	if err != nil {
		s.host.o.Log.Error("an action could not be told", "run", s.runID, "error", err)
		return
	}
	status := "succeeded"
	if a.Verification != "verified" {
		status = "failed"
	}
	s.tracing.traceNote("signal", data)
	s.back.Event("run.browser_action", status, data)
}

// denied puts denials of the network into the timeline.
func (s *Session) denied(d chromium.Denial) {
	data := map[string]any{"host": d.Host, "port": d.Port, "verdict": d.Verdict, "count": d.Count}
	s.tracing.traceNote("denial", data)
	s.back.Event("run.browser_egress_denied", "denied", data)
}
