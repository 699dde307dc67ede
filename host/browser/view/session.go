package view

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A session is one view: minted, redeemed once, connected, resumed, ended. Fields below the blank
// line are guarded by Views.mu.
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
	reason   string // the reason, once it is over
	resume   digest // of the secret that resumes it
	viewer   *viewer
	lapse    *time.Timer // ends it if it is not redeemed or not resumed

	barred bool // may not take control, since it is over; guarded by Run.mu
}

// A subject is what a session is about. Of sessions with equal subjects only the newest lives.
type subject struct{ owner, run, mode, interaction, assistance string }

func (s *session) subject() subject {
	return subject{s.owner, s.run.id, s.mode, s.interaction, s.assistance}
}

// A replay identifies a mint request that may be repeated.
type replay struct {
	subject
	key string
}

// Mint makes a view, or repeats the answer to a request with the same key. The error is a *Refusal.
// The caller checks that the run exists and that the owner may view it.
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
	s := &session{id: newViewID(), owner: q.Owner, run: r, mode: q.Mode, interaction: interaction, assistance: assistance,
		viewport: q.Viewport}
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

// lapsed ends a session that still waits for a connection.
func (v *Views) lapsed(s *session, code int, reason string) {
	v.mu.Lock()
	waits := s.viewer == nil
	v.mu.Unlock()
	if waits {
		v.end(s, code, reason)
	}
}

// Revoke ends a view of the owner. It reports false if the view does not exist or belongs to
// another owner.
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

// end ends a session once: its connection is closed and its secrets become invalid.
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
	if reason == ReasonExpired { // latecomers are told for a while
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
	if w != nil { // closing may take a moment
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

// facts returns a session's data for events: no token and nothing of the page.
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

// Failed records that a dashboard could not reach a view. It reports false for a view that the
// owner did not mint.
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

// firstMessage bounds how long a connection may stay silent before it presents a token.
const firstMessage = 10 * time.Second

// An opening is the first message of a connection: a token, or the secret to resume a dropped
// connection. Stills asks for still pictures only.
type opening struct {
	Type          string `json:"type"`
	Token         string `json:"token"`
	Resume        string `json:"resume"`
	InteractionID string `json:"interaction_id"`
	Stills        bool   `json:"stills"`
}

// Connect serves one connection of an owner's until it ends, or ctx does. owner
// and run are those of the request that was upgraded. It closes conn.
func (v *Views) Connect(ctx context.Context, owner, run string, conn Conn) {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		conn.Close(CloseGoing, ReasonStopping)
		return
	}
	v.viewers.Add(1)
	v.mu.Unlock()
	defer v.viewers.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close(CloseGoing, ReasonStopping) })()

	late := time.AfterFunc(firstMessage, func() { conn.Close(CloseInvalidToken, ReasonInvalidToken) })
	binary, raw, err := conn.Read()
	late.Stop()
	var o opening
	if err != nil || binary || len(raw) > 4<<10 || json.Unmarshal(raw, &o) != nil || o.Type != "auth" {
		conn.Close(CloseInvalidToken, ReasonInvalidToken)
		return
	}
	w, resume, code, reason := v.redeem(ctx, owner, run, o, conn)
	if w == nil {
		conn.Close(code, reason)
		return
	}
	w.serve(resume)
	v.left(w)
}

// redeem exchanges a token or a resume secret for a viewer, once.
func (v *Views) redeem(ctx context.Context, owner, run string, o opening,
	conn Conn) (w *viewer, resume string, code int, reason string) {
	v.mu.Lock()
	s := v.tokens[digestOf(o.Token)]
	if o.Token == "" {
		s = v.resumes[digestOf(o.Resume)]
	}
	code, reason = v.checkOpening(s, owner, run, o)
	if code != 0 {
		v.mu.Unlock()
		return nil, "", code, reason
	}
	before := s.viewer
	if before == nil && !s.run.room() {
		v.mu.Unlock()
		return nil, "", CloseBusy, ReasonCrowded
	}
	first := !s.redeemed
	s.redeemed = true
	s.lapse.Stop()
	delete(v.tokens, s.token)
	delete(v.resumes, s.resume)
	resume = newResume()
	s.resume = digestOf(resume)
	v.resumes[s.resume] = s
	w = newViewer(ctx, s, conn, o.Stills)
	s.viewer = w
	v.mu.Unlock()
	if before != nil {
		v.work.Go(func() { before.close(CloseDone, ReasonReplaced) })
	}
	if first {
		s.run.event("run.stream_session_opened", "opened", s.facts())
	}
	return w, resume, 0, ""
}

// checkOpening checks the first message, in an order that reveals nothing to strangers.
func (v *Views) checkOpening(s *session, owner, run string, o opening) (code int, reason string) {
	switch {
	case s == nil || s.owner != owner || s.over && s.reason != ReasonExpired:
		return CloseInvalidToken, ReasonInvalidToken
	case s.run.id != run, o.InteractionID != "" && o.InteractionID != s.interaction:
		return CloseForbidden, ReasonForeign
	case s.over || !s.redeemed && !time.Now().Before(s.expires):
		return CloseExpired, ReasonExpired
	}
	return 0, ""
}

// left handles the end of a connection: its session waits for another one.
func (v *Views) left(w *viewer) {
	s := w.session
	v.mu.Lock()
	mine := s.viewer == w
	bye := w.saidBye()
	if mine {
		s.viewer = nil
		if !bye {
			s.lapse = time.AfterFunc(ResumeLife, func() { v.lapsed(s, CloseExpired, ReasonExpired) })
		}
	}
	v.mu.Unlock()
	if mine && bye {
		v.end(s, CloseDone, ReasonBye)
	}
}
