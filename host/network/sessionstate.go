package network

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// sessionState is the state of a session between calls, for the next host.
type sessionState struct {
	Next       uint32        `json:"next"`           // handle
	Open       []uint32      `json:"open,omitempty"` // handles of bodies not read to their end
	Unanswered []uint32      `json:"away,omitempty"` // requests whose answers the guest does not have
	Received   int64         `json:"received"`
	Cookies    []savedCookie `json:"cookies,omitempty"`
	Replayed   int           `json:"asked,omitempty"` // requests answered from a recording
}

// A savedCookie is a cookie as it was set. The guest never sees it.
type savedCookie struct {
	URL    string       `json:"url"`
	Cookie *http.Cookie `json:"cookie"`
}

// saveCookie converts a cookie's age to an absolute expiry, so that it does not change when
// it is set again.
func saveCookie(u *url.URL, c *http.Cookie) savedCookie {
	saved := *c // #nosec G124 -- a cookie that a server set, not one of ours
	saved.Raw, saved.Unparsed = "", nil
	if saved.MaxAge > 0 {
		saved.Expires, saved.MaxAge = time.Now().Add(time.Duration(min(saved.MaxAge, 400*24*3600))*time.Second), 0
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return savedCookie{at.String(), &saved}
}

// SaveState implements binding.StateSaver: cookies and the count of received bytes. Bodies that are
// not read to their end and requests in progress break off. Handles of tokens are valid in
// this session only.
func (s *Session) SaveState(breakOff bool) ([]byte, string) {
	h := sessionState{Unanswered: s.inFlight.unanswered()}
	switch x := s.exchanger.(type) {
	case *Client:
		h.Received, h.Cookies = x.received.Load(), x.jar.saved()
	case *Replayer:
		h.Replayed = x.count()
	default:
		return nil, "it is recorded"
	}
	s.mu.Lock()
	h.Next, h.Open = s.next, slices.Sorted(maps.Keys(s.handles))
	reserved := s.reserved
	s.mu.Unlock()
	switch {
	case s.seals.hasIssued():
		return nil, "it has a token of a server that only its host knows"
	case !breakOff && len(h.Open)+reserved > 0:
		return nil, "it has not read all of an answer of a server"
	case !breakOff && len(h.Unanswered) > 0:
		return nil, "it has requests on their way"
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, "what it holds cannot be kept"
	}
	return b, ""
}

// RestoreState implements binding.StateSaver.
func (s *Session) RestoreState(b []byte) error {
	var h sessionState
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("read what a session held: %w", err)
	}
	switch x := s.exchanger.(type) {
	case *Client:
		for _, k := range h.Cookies {
			u, err := url.Parse(k.URL)
			if err != nil || k.Cookie == nil {
				return fmt.Errorf("read what a session held: %w", errBadCookie)
			}
			x.jar.store(u, []*http.Cookie{k.Cookie})
		}
		x.received.Store(h.Received)
	case *Replayer:
		x.skip(h.Replayed)
	}
	for _, id := range h.Unanswered {
		s.inFlight.addCompleted(errorAnswer(id, errReplyLost))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(1, h.Next)
	for _, handle := range h.Open {
		s.handles[handle] = brokenBody{}
	}
	return nil
}

// errReplyLost says that the host ended between a request and its answer. The server may
// have processed the request, so it is not repeated; the connector has to find out.
var errReplyLost = failf(abi.EUNAVAIL, "reply_lost",
	"the host ended before the answer was kept; the server may have got the request")

// LostReply implements binding.StateSaver.
func (s *Session) LostReply(call abi.Call, payload []byte) ([]byte, abi.Errno) {
	if call != abi.CallNetworkExchange {
		return errReplyLost.text(), errReplyLost.Errno
	}
	_, asked, err := abi.ParseExchange(payload)
	if err != nil {
		e := malformed("%v", err)
		return e.text(), e.Errno
	}
	for _, a := range asked {
		s.inFlight.addCompleted(errorAnswer(a.ID, errReplyLost))
	}
	return s.inFlight.takeCompleted(), abi.OK
}

// A brokenBody body is the unread rest of a body of the previous host.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) {
	return 0, failf(abi.EUNAVAIL, "broken_off", "the body broke off: the host that read it ended")
}

func (brokenBody) Close() error { return nil }
func (brokenBody) Abort()       {}

var errBadCookie = fmt.Errorf("no cookie")

// saved lists the cookies that were set, in no particular order.
func (j *jar) saved() (out []savedCookie) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, names := range j.stored {
		for _, c := range names {
			out = append(out, c)
		}
	}
	return out
}

// unanswered lists the requests in progress or with answers not yet taken.
func (f *inFlightRequests) unanswered() (ids []uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.requests {
		ids = append(ids, w.ID)
	}
	for _, a := range f.completed {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids
}

// hasIssued reports whether the guest has a handle for a value that came from a server.
func (s *Seals) hasIssued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens != nil && len(s.tokens.issued) > 0
}
