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

// questions watches the surface while an owner is asked to use it.
type questions struct {
	s *Session

	mu    sync.Mutex         // guards what follows
	open  map[string]bool    // interactions; true if watched
	end   context.CancelFunc // ends the probing; nil while there is none
	shown *abi.Attachment    // what the run was last told; may be nil
	last  *fleet.Probe       // the latest probe; may be nil
}

// Asked reports that an interaction was opened. For manual_action and otp a registered surface is
// watched. It returns at once.
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

// Answered reports that an interaction is over.
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

// asked updates the dialog policy for the open interactions.
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

// told receives a probe and tells the run if the attachment has changed.
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

// attachment returns the surface's attachment as last known. The caller holds mu.
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

// Surface returns the attachment of the surface, as far as known.
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

// Probe returns Surface after one probe, for an interaction that is about to open. It ends with
// ctx.
func (s *Session) Probe(ctx context.Context) abi.Attachment {
	if o := s.current(); o != nil && o.Fault() == nil {
		p := o.Probe(ctx)
		s.questions.mu.Lock()
		s.questions.last = &p
		s.questions.mu.Unlock()
	}
	return s.Surface()
}

// titleLimit bounds reading a title.
const titleLimit = 2 * time.Second

// Page returns title and host of the page that a question is about. The host is known to this host;
// the title is read from the page, unless a dialog prevents that, and is empty if the page does not
// answer in time.
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

// lost is called once when the surface is lost.
func (s *Session) lost(id string, p fleet.Probe) {
	s.back.Lost(id, binding.Probe(p))
}

// surfaceEvent adds a step of the surface's life to the run's timeline.
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

// signal adds a finished action to the timeline: its fields, role and url_host, and nothing else.
func (s *Session) signal(a engine.Signal) {
	text, err := json.Marshal(a)
	if err == nil {
		text, err = abi.CleanJSON(text) // an element's name comes from the page
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

// denied adds denied connections to the timeline.
func (s *Session) denied(d chromium.Denial) {
	data := map[string]any{"host": d.Host, "port": d.Port, "verdict": d.Verdict, "count": d.Count}
	s.tracing.traceNote("denial", data)
	s.back.Event("run.browser_egress_denied", "denied", data)
}
