package network

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/egress"
)

// sessionState is the state of a session between calls, for the next host.
type sessionState struct {
	Next       uint32               `json:"next"`           // handle
	Open       []uint32             `json:"open,omitempty"` // handles of bodies not read to their end
	Unanswered []uint32             `json:"away,omitempty"` // requests whose answers the guest does not have
	Received   int64                `json:"received"`
	Cookies    []egress.SavedCookie `json:"cookies,omitempty"`
	Replayed   int                  `json:"asked,omitempty"` // requests answered from a recording
}

// SaveState implements binding.StateSaver: cookies and the count of received bytes. Bodies that are
// not read to their end and requests in progress break off. Handles of tokens are valid in
// this session only.
func (s *Session) SaveState(breakOff bool) ([]byte, string) {
	h := sessionState{Unanswered: s.inFlight.unanswered()}
	switch x := s.exchanger.(type) {
	case *egress.Client:
		h.Received, h.Cookies = x.Received().Load(), x.Cookies()
	case *egress.Replayer:
		h.Replayed = x.Count()
	default:
		return nil, "it is recorded"
	}
	s.mu.Lock()
	h.Next, h.Open = s.next, slices.Sorted(maps.Keys(s.handles))
	reserved := s.reserved
	s.mu.Unlock()
	switch {
	case s.seals.HasIssued():
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
	case *egress.Client:
		if err := x.RestoreCookies(h.Cookies); err != nil {
			return fmt.Errorf("read what a session held: %w", err)
		}
		x.Received().Store(h.Received)
	case *egress.Replayer:
		x.Skip(h.Replayed)
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
var errReplyLost = egress.Errorf(abi.EUNAVAIL, "reply_lost",
	"the host ended before the answer was kept; the server may have got the request")

// LostReply implements binding.StateSaver.
func (s *Session) LostReply(call abi.Call, payload []byte) ([]byte, abi.Errno) {
	if call != abi.CallNetworkExchange {
		return errReplyLost.Reply()
	}
	_, asked, err := abi.ParseExchange(payload)
	if err != nil {
		e := egress.Malformed("%v", err)
		return e.Reply()
	}
	for _, a := range asked {
		s.inFlight.addCompleted(errorAnswer(a.ID, errReplyLost))
	}
	return s.inFlight.takeCompleted(), abi.OK
}

// A brokenBody body is the unread rest of a body of the previous host.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) {
	return 0, egress.Errorf(abi.EUNAVAIL, "broken_off", "the body broke off: the host that read it ended")
}

func (brokenBody) Close() error { return nil }
func (brokenBody) Abort()       {}

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
