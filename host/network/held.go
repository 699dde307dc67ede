package network

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// held is what a session holds for its run between calls.
type held struct {
	Next     uint32       `json:"next"` // handle
	Received int64        `json:"received"`
	Cookies  []heldCookie `json:"cookies,omitempty"`
}

// A heldCookie is a cookie as it was set. The guest never sees it.
type heldCookie struct {
	URL    string       `json:"url"`
	Cookie *http.Cookie `json:"cookie"`
}

// holdCookie makes a cookie's end a moment, so that it is the same whenever it is set again.
func holdCookie(u *url.URL, c *http.Cookie) heldCookie {
	kept := *c // #nosec G124 -- a cookie that a server set, not one of ours
	kept.Raw, kept.Unparsed = "", nil
	if kept.MaxAge > 0 {
		kept.Expires, kept.MaxAge = time.Now().Add(time.Duration(min(kept.MaxAge, 400*24*3600))*time.Second), 0
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return heldCookie{at.String(), &kept}
}

// Held implements binding.Holder: cookies, and how much was received. Answers that are not read
// to their end, requests that are on their way, and tokens that the guest has as handles are
// this session's alone.
func (s *Session) Held() ([]byte, string) {
	c, ok := s.exchanger.(*Client)
	if !ok {
		return nil, "it is recorded or replayed"
	}
	s.mu.Lock()
	open, next := len(s.handles)+s.reserved, s.next
	s.mu.Unlock()
	switch {
	case open > 0:
		return nil, "it has not read all of an answer of a server"
	case s.flights.busy():
		return nil, "it has requests on their way"
	case s.seals.issued():
		return nil, "it has a token of a server that only its host knows"
	}
	h := held{Next: next, Received: c.received.Load(), Cookies: c.jar.held()}
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
	c, ok := s.exchanger.(*Client)
	if !ok {
		return nil
	}
	for _, k := range h.Cookies {
		u, err := url.Parse(k.URL)
		if err != nil || k.Cookie == nil {
			return fmt.Errorf("read what a session held: %w", errNoCookie)
		}
		c.jar.take(u, []*http.Cookie{k.Cookie})
	}
	c.received.Store(h.Received)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(1, h.Next)
	return nil
}

var errNoCookie = fmt.Errorf("no cookie")

// held lists what was set, in no order.
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

// busy reports whether requests are on their way, or their answers were not taken.
func (f *flights) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.away)+len(f.landed) > 0
}

// issued reports whether the guest has a handle for a value that came from a server.
func (s *Seals) issued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens != nil && len(s.tokens.issued) > 0
}
