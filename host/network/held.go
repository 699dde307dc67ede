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

// held is the state of a session between calls, for the next host.
type held struct {
	Next     uint32       `json:"next"`           // handle
	Open     []uint32     `json:"open,omitempty"` // handles of bodies not read to their end
	Away     []uint32     `json:"away,omitempty"` // requests whose answers the guest does not have
	Received int64        `json:"received"`
	Cookies  []heldCookie `json:"cookies,omitempty"`
	Asked    int          `json:"asked,omitempty"` // requests answered from a recording
}

// A heldCookie is a cookie as it was set. The guest never sees it.
type heldCookie struct {
	URL    string       `json:"url"`
	Cookie *http.Cookie `json:"cookie"`
}

// holdCookie converts a cookie's age to an absolute expiry, so that it does not change when
// it is set again.
func holdCookie(u *url.URL, c *http.Cookie) heldCookie {
	kept := *c // #nosec G124 -- a cookie that a server set, not one of ours
	kept.Raw, kept.Unparsed = "", nil
	if kept.MaxAge > 0 {
		kept.Expires, kept.MaxAge = time.Now().Add(time.Duration(min(kept.MaxAge, 400*24*3600))*time.Second), 0
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return heldCookie{at.String(), &kept}
}

// Held implements binding.Holder: cookies and the count of received bytes. Bodies that are
// not read to their end and requests in progress break off. Handles of tokens are valid in
// this session only.
func (s *Session) Held(breakOff bool) ([]byte, string) {
	h := held{Away: s.flights.untaken()}
	switch x := s.exchanger.(type) {
	case *Client:
		h.Received, h.Cookies = x.received.Load(), x.jar.held()
	case *Replayer:
		h.Asked = x.asked()
	default:
		return nil, "it is recorded"
	}
	s.mu.Lock()
	h.Next, h.Open = s.next, slices.Sorted(maps.Keys(s.handles))
	reserved := s.reserved
	s.mu.Unlock()
	switch {
	case s.seals.issued():
		return nil, "it has a token of a server that only its host knows"
	case !breakOff && len(h.Open)+reserved > 0:
		return nil, "it has not read all of an answer of a server"
	case !breakOff && len(h.Away) > 0:
		return nil, "it has requests on their way"
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, "what it holds cannot be kept"
	}
	return b, ""
}

// Hold implements binding.Holder.
func (s *Session) Hold(b []byte) error {
	var h held
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("read what a session held: %w", err)
	}
	switch x := s.exchanger.(type) {
	case *Client:
		for _, k := range h.Cookies {
			u, err := url.Parse(k.URL)
			if err != nil || k.Cookie == nil {
				return fmt.Errorf("read what a session held: %w", errNoCookie)
			}
			x.jar.take(u, []*http.Cookie{k.Cookie})
		}
		x.received.Store(h.Received)
	case *Replayer:
		x.goesOn(h.Asked)
	}
	for _, id := range h.Away {
		s.flights.keep(refusal(id, errReplyLost))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(1, h.Next)
	for _, handle := range h.Open {
		s.handles[handle] = brokenOff{}
	}
	return nil
}

// errReplyLost says that the host ended between a request and its answer. The server may
// have processed the request, so it is not repeated; the connector has to find out.
var errReplyLost = failf(abi.EUNAVAIL, "reply_lost", "the host ended before the answer was kept; the server may have got the request")

// Lost implements binding.Holder.
func (s *Session) Lost(call abi.Call, payload []byte) ([]byte, abi.Errno) {
	if call != abi.CallNetworkExchange {
		return errReplyLost.text(), errReplyLost.Errno
	}
	_, asked, err := abi.ParseExchange(payload)
	if err != nil {
		e := malformed("%v", err)
		return e.text(), e.Errno
	}
	for _, a := range asked {
		s.flights.keep(refusal(a.ID, errReplyLost))
	}
	return s.flights.take(), abi.OK
}

// A brokenOff body is the unread rest of a body of the previous host.
type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) {
	return 0, failf(abi.EUNAVAIL, "broken_off", "the body broke off: the host that read it ended")
}

func (brokenOff) Close() error { return nil }
func (brokenOff) Abort()       {}

var errNoCookie = fmt.Errorf("no cookie")

// held lists the cookies that were set, in no particular order.
func (j *jar) held() (out []heldCookie) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, names := range j.seen {
		for _, c := range names {
			out = append(out, c)
		}
	}
	return out
}

// untaken lists the requests in progress or with answers not yet taken.
func (f *flights) untaken() (ids []uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.away {
		ids = append(ids, w.ID)
	}
	for _, a := range f.landed {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids
}

// issued reports whether the guest has a handle for a value that came from a server.
func (s *Seals) issued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens != nil && len(s.tokens.issued) > 0
}
