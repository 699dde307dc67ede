package view

import (
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Run is the viewable state of one run. The keeper of the run's browser reports changes to it.
// All methods except Settled return at once.
type Run struct {
	id      string
	views   *Views
	surface Surface
	event   func(typ, status string, data map[string]any)

	// acting is held while an action of the owner is applied to the page and while a lease begins
	// or ends, so that no input reaches a page after its lease has ended.
	acting sync.Mutex

	mu          sync.Mutex // guards the fields below
	screen      page.Screen
	broadcast   *broadcast // while there are viewers
	interaction pending
	assistances map[string]bool // open ones with operate_attachment
	viewers     map[*viewer]bool
	lease       lease
	uploads     []Upload
	minted      []time.Time
	noticed     map[string]time.Time // when a code was last sent
	ended       bool
}

// pending is the open interaction; "" means none.
type pending struct{ id, kind string }

// Up reports that the run has a surface to view.
func (r *Run) Up(screen page.Screen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.screen = screen
	}
}

// Down reports that the surface is gone. Sessions end with the reason (ReasonLost, ReasonEnded),
// and the owner's uploads are erased.
func (r *Run) Down(reason string) {
	r.mu.Lock()
	r.screen = nil
	uploads := r.uploads
	r.uploads = nil
	casting := r.broadcast
	r.broadcast = nil
	r.mu.Unlock()
	if casting != nil {
		casting.close()
	}
	r.views.endAll(r, func(*session) bool { return true }, CloseDone, reason)
	for _, u := range uploads {
		u.Erase()
	}
}

// Asked reports that an interaction was opened.
func (r *Run) Asked(id, kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interaction = pending{id, kind}
}

// Answered reports that an interaction was closed, for whatever reason, which ends its sessions and
// its lease.
func (r *Run) Answered(id, reason string) {
	r.mu.Lock()
	if r.interaction.id == id {
		r.interaction = pending{}
	}
	r.mu.Unlock()
	r.views.endAll(r, func(s *session) bool { return s.interaction == id }, CloseDone, reason)
}

// Assisted reports whether assistance is open that asks the owner to work in the browser.
func (r *Run) Assisted(id string, open bool) {
	r.mu.Lock()
	if r.assistances == nil {
		r.assistances = map[string]bool{}
	}
	if open {
		r.assistances[id] = true
	} else {
		delete(r.assistances, id)
	}
	r.mu.Unlock()
	if !open {
		r.views.endAll(r, func(s *session) bool { return s.assistance == id }, CloseDone, ReasonEnded)
	}
}

// End forgets the run. It may be called again.
func (r *Run) End() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.views.mu.Lock()
	if r.views.runs[r.id] == r {
		delete(r.views.runs, r.id)
	}
	r.views.mu.Unlock()
	r.Down(ReasonEnded)
}

// Notice tells viewers of an event beside the picture, by a code such as download_denied and a name
// of at most 255 bytes. Each code is sent at most once a second, since a page may offer hundreds of
// files.
func (r *Run) Notice(code, name string) {
	r.mu.Lock()
	now := time.Now()
	often := now.Sub(r.noticed[code]) < noticeEvery
	if !often {
		if r.noticed == nil {
			r.noticed = map[string]time.Time{}
		}
		r.noticed[code] = now
	}
	r.mu.Unlock()
	if often {
		return
	}
	r.tell(outgoing{"type": "notice", "code": code, "name": clean(name, 255)})
}

const noticeEvery = time.Second

// about returns what a view is about, or a refusal if it may not be opened.
func (r *Run) about(q Mint) (interaction, assistance string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now := r.interaction; {
	case q.AssistanceID != "" && q.InteractionID == "":
		if !r.assistances[q.AssistanceID] {
			return "", "", refuse(CodeNoPending, "This request is not open any more, or needs no browser.")
		}
		assistance = q.AssistanceID
	case q.InteractionID != "" && now.id == "":
		return "", "", refuse(CodeNoPending, "The run is not waiting for anything.")
	case q.InteractionID != "" && now.id != q.InteractionID:
		return "", "", refuse(CodeMismatch, "The run is waiting for something else by now.")
	case now.id != "":
		if q.Mode == ModeControl && now.kind != "manual_action" && now.kind != "otp" {
			return "", "", refuse(CodeKind, "What the run waits for is not done in the browser.")
		}
		interaction = now.id
	case q.Mode == ModeControl:
		for id := range r.assistances {
			assistance = max(assistance, id)
		}
		if assistance == "" {
			return "", "", refuse(CodeNoPending, "The run is not waiting for anything.")
		}
	}
	if r.screen == nil {
		return "", "", refuse(CodeUnavailable, "The run has no live browser.")
	}
	return interaction, assistance, nil
}

// mayMint counts the views minted within a minute.
func (r *Run) mayMint(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.minted) > 0 && now.Sub(r.minted[0]) >= time.Minute {
		r.minted = r.minted[1:]
	}
	if len(r.minted) >= mintsPerMinute {
		return false
	}
	r.minted = append(r.minted, now)
	return true
}

// room reports whether one more viewer is allowed.
func (r *Run) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.viewers) < MaxViewers
}

// enter adds a viewer. The first one starts the broadcast.
func (r *Run) enter(w *viewer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.screen == nil {
		return false
	}
	r.viewers[w] = true
	if r.broadcast == nil {
		r.broadcast = newBroadcast(r, r.screen)
		r.broadcast.start(&r.views.work)
	}
	r.broadcast.look()
	return true
}

// leave removes a viewer. The last one ends the broadcast, and its picture is forgotten.
func (r *Run) leave(w *viewer) {
	r.mu.Lock()
	delete(r.viewers, w)
	casting := r.broadcast
	if len(r.viewers) == 0 {
		r.broadcast = nil
	} else {
		if casting != nil {
			casting.look()
		}
		casting = nil
	}
	r.mu.Unlock()
	if casting != nil {
		casting.close()
	}
}

// tell sends a message to all viewers.
func (r *Run) tell(m outgoing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.viewers {
		w.send(m)
	}
}

// refresh makes all viewers receive the current state.
func (r *Run) refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.viewers {
		w.stale()
	}
}
