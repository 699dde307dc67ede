package view

import (
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A session is one view: minted, redeemed once, connected, resumed, over. What is
// below the line is guarded by Views.mu.
type session struct {
	id          string
	owner       string
	run         *Run
	mode        string
	interaction string
	assistance  string
	viewport    *page.Viewport
	expires     time.Time // of the token
	token       digest

	redeemed bool
	over     bool
	reason   string // why, once it is over
	resume   digest // of the secret that continues it
	viewer   *viewer
	lapse    *time.Timer // ends it: unredeemed, or dropped and not resumed

	barred bool // from control, since it is over; guarded by Run.mu
}

// A subject is what a session is about: of those with an equal one the newest
// lives (B211).
type subject struct{ owner, run, mode, interaction, assistance string }

func (s *session) subject() subject {
	return subject{s.owner, s.run.id, s.mode, s.interaction, s.assistance}
}

// A replay names a request to mint that may be repeated.
type replay struct {
	subject
	key string
}

// Mint makes a view (B208), or repeats the answer of a request with the same key.
// The error is a *Refusal. That the run exists, and that the owner may, is the
// caller's business.
func (v *Views) Mint(q Mint) (Minted, error) {
	if q.Mode != ModeView && q.Mode != ModeControl || q.Owner == "" {
		return Minted{}, refuse(CodeRequest, "The mode of a view is view or control.")
	}
	r := v.run(q.Run)
	if r == nil {
		return Minted{}, refuse(CodeUnavailable, "The run has no browser.")
	}
	interaction, assistance, err := r.about(q)
	if err != nil {
		return Minted{}, err
	}
	out, fresh, err := v.mint(r, q, interaction, assistance)
	if fresh != nil {
		r.event("run.stream_session_requested", "requested", fresh.facts())
	}
	return out, err
}

func (v *Views) mint(r *Run, q Mint, interaction, assistance string) (Minted, *session, error) {
	s := &session{id: newViewID(), owner: q.Owner, run: r, mode: q.Mode, interaction: interaction, assistance: assistance, viewport: q.Viewport}
	v.mu.Lock()
	again := replay{s.subject(), q.Key}
	if old := v.replays[again]; q.Key != "" && old != nil && !old.over {
		out := Minted{ViewID: old.id, Mode: old.mode, ExpiresAt: old.expires, Replayed: true}
		if !old.redeemed {
			out.Token = v.token(old.id)
		}
		v.mu.Unlock()
		return out, nil, nil
	}
	if v.closed || v.runs[r.id] != r {
		v.mu.Unlock()
		return Minted{}, nil, refuse(CodeUnavailable, "The run has no browser.")
	}
	var earlier []*session
	of := 0
	for _, o := range v.sessions {
		switch {
		case o.run != r:
		case o.subject() == s.subject():
			earlier = append(earlier, o)
		default:
			of++
		}
	}
	if of >= MaxSessions || !r.mayMint(time.Now()) {
		v.mu.Unlock()
		return Minted{}, nil, refuse(CodeLimited, "There were too many views of this run. Wait a minute.")
	}
	token := v.token(s.id)
	s.token, s.expires = digestOf(token), time.Now().Add(TokenLife)
	v.sessions[s.id], v.tokens[s.token] = s, s
	if q.Key != "" {
		v.replays[again] = s
	}
	s.lapse = time.AfterFunc(TokenLife, func() { v.lapsed(s, CloseExpired, ReasonExpired) })
	v.mu.Unlock()
	for _, o := range earlier {
		v.end(o, CloseInvalidToken, ReasonSuperseded)
	}
	return Minted{ViewID: s.id, Token: token, Mode: s.mode, ExpiresAt: s.expires}, s, nil
}

// lapsed ends a session that waits for a connection, if it still does.
func (v *Views) lapsed(s *session, code int, reason string) {
	v.mu.Lock()
	waits := s.viewer == nil
	v.mu.Unlock()
	if waits {
		v.end(s, code, reason)
	}
}

// Revoke ends a view of the owner's (A232). It reports false for one that does not
// exist, or is another's.
func (v *Views) Revoke(owner, run, viewID string) bool {
	s := v.find(owner, run, viewID)
	return s != nil && v.end(s, CloseDone, ReasonRevoked)
}

func (v *Views) find(owner, run, viewID string) *session {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sessions[viewID]
	if s == nil || s.owner != owner || s.run.id != run {
		return nil
	}
	return s
}

// end ends a session, once: its connection is closed, its secrets are void.
func (v *Views) end(s *session, code int, reason string) bool {
	v.mu.Lock()
	if s.over {
		v.mu.Unlock()
		return false
	}
	if v.stopping && reason == ReasonEnded {
		code, reason = CloseGoing, ReasonStopping
	}
	s.over, s.reason = true, reason
	w := s.viewer
	s.viewer = nil
	if s.lapse != nil {
		s.lapse.Stop()
	}
	delete(v.sessions, s.id)
	if reason == ReasonExpired { // whoever comes late is told so for a while
		time.AfterFunc(10*TokenLife, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.forget(s)
		})
	} else {
		v.forget(s)
	}
	for k, o := range v.replays {
		if o == s {
			delete(v.replays, k)
		}
	}
	v.mu.Unlock()
	data := s.facts()
	data["reason"] = reason
	s.run.event("run.stream_session_resolved", "resolved", data)
	s.run.bar(s)
	if w != nil { // saying goodbye may take a moment
		v.work.Go(func() { w.close(code, reason) })
	}
	return true
}

// forget makes the secrets of a session unknown. The caller holds Views.mu.
func (v *Views) forget(s *session) {
	delete(v.tokens, s.token)
	delete(v.resumes, s.resume)
}

func (v *Views) endAll(r *Run, which func(*session) bool, code int, reason string) {
	v.mu.Lock()
	var found []*session
	for _, s := range v.sessions {
		if s.run == r && which(s) {
			found = append(found, s)
		}
	}
	v.mu.Unlock()
	for _, s := range found {
		v.end(s, code, reason)
	}
}

// facts are what events say of a session: no token and nothing of the page (B214).
func (s *session) facts() map[string]any {
	data := map[string]any{"view_id": s.id, "mode": s.mode}
	if s.interaction != "" {
		data["interaction_id"] = s.interaction
	}
	if s.assistance != "" {
		data["assistance_id"] = s.assistance
	}
	return data
}

// Failed records that a dashboard could not reach a view (B214). It reports false
// for a view that the owner did not mint.
func (v *Views) Failed(owner, run, viewID, reason string, httpStatus int) bool {
	s := v.find(owner, run, viewID)
	if s == nil {
		return false
	}
	switch reason {
	case "invalid_token", "session_consumed", "session_expired", "companion_unavailable", "unreachable_origin":
	default:
		reason = "unknown"
	}
	data := map[string]any{"view_id": s.id, "reason": reason}
	if httpStatus >= 100 && httpStatus <= 599 {
		data["http_status"] = httpStatus
	}
	s.run.event("run.stream_reach_failed", "failed", data)
	return true
}
