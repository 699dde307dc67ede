package view

import (
	"context"
	"encoding/json"
	"time"
)

// firstMessage is how long a connection may stay silent before it has shown a
// token.
const firstMessage = 10 * time.Second

// An opening is the first message of a connection (B212): a token, or the secret
// of a connection that dropped. Stills asks for pictures that do not move (B233).
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

// redeem turns a token, or a resume secret, into a viewer, once.
func (v *Views) redeem(ctx context.Context, owner, run string, o opening, conn Conn) (w *viewer, resume string, code int, reason string) {
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

// checkOpening is B212, in the order in which nothing is told to a stranger.
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

// left is the end of a connection: its session waits for another one (B213).
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
