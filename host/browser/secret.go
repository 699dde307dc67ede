package browser

import (
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// secrets are the sealed values as the engine needs them.
type secrets struct{ s *Session }

// Value implements engine.Secrets (B38).
func (x secrets) Value(handle, pageOrigin, frameOrigin string, field page.Node) (string, *engine.Refusal) {
	return x.s.seals.value(handle, pageOrigin, frameOrigin, field)
}

// Login implements engine.Secrets.
func (x secrets) Login(origin string, handles ...string) ([]string, *engine.Refusal) {
	return x.s.seals.login(origin, handles)
}

// Hide implements engine.Secrets.
func (x secrets) Hide(text string) string { return x.s.seals.hideText(text) }

// Submitted implements engine.Secrets: from now on no failure of the session is
// retried, so that no password is sent again (B41).
func (x secrets) Submitted() { x.s.submitted.Store(true) }

// Spent reports that a stored secret may have reached a server while a session was
// made that did not come about: another attempt would send it again (B41).
func (s *Session) Spent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.submitted.Load() && s.unsettled
}

// settled says whether a session that the run needs has come about.
func (s *Session) settled(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsettled = !is
}
