package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

// How long an answer is stored, and how long a duplicate request waits for it.
const (
	ReplyLife   = 24 * time.Hour
	ReplyFailed = time.Minute
	ReplyWait   = 30 * time.Second
	// maxReply bounds the body of a stored answer. Answers of changing routes are single resources;
	// larger answers are not stored.
	maxReply = 512 << 10
)

// Replies stores the answers to idempotent requests.
type Replies struct {
	store   store.Documents
	members store.Members // nil for a host that shares no store
	now     func() time.Time
	mac     func(purpose string, parts ...[]byte) []byte
	seal    *sealer

	mu      sync.Mutex // guards flights
	flights map[string]*flight
}

// A flight is a request being carried out.
type flight struct {
	print []byte
	by    string
	done  chan struct{} // closed when it ends
	reply *Reply        // valid after done; nil without an answer
	bare  *Reply        // the reply for others than by, without one-time secrets
}

// A Reply is an answer as it was sent.
type Reply struct {
	Status   int
	Body     []byte
	Location string
}

// A Request identifies an idempotent request.
type Request struct {
	// Space separates principals that must not get each other's answers: the tenant, and the key if
	// it is restricted.
	Space  string
	Method string
	Path   string // concrete
	Key    string
	// By is the principal. One-time secrets are repeated only to the same principal, since others
	// of the space may lack the scopes that a secret carries.
	By string
	// Query and Content must be equal too. They are not stored.
	Query, Content []byte
}

// A storedReply is a reply's document. Body lacks the members that Sealed adds.
type storedReply struct {
	Print    []byte `json:"print"`
	Status   int    `json:"status"`
	Body     []byte `json:"body,omitempty"`
	Location string `json:"location,omitempty"`
	Sealed   []byte `json:"sealed,omitempty"`
	// Epoch is that of the host that can open Sealed, among those that share a store.
	Epoch string `json:"epoch,omitempty"`
}

func newReplies(st store.Documents, now func() time.Time, mac func(string, ...[]byte) []byte) *Replies {
	return &Replies{store: st, members: store.MembersOf(st), now: now, mac: mac, seal: newSealer(now),
		flights: map[string]*flight{}}
}

// Begin returns the answer of an equal earlier request, or a slot whose holder carries the request
// out and ends it with Finish or Abandon. While an equal request is running, it waits up to
// ReplyWait for its answer. It returns ErrKeySyntax, ErrMismatch or ErrInFlight; any other error is
// ctx's or the store's.
func (r *Replies) Begin(ctx context.Context, q Request) (*Reply, *Slot, error) {
	if !ValidKey(q.Key) {
		return nil, nil, ErrKeySyntax
	}
	id := hex.EncodeToString(r.mac("idempotency id", []byte(q.Space), []byte(q.Method), []byte(q.Path), []byte(q.Key)))
	print := r.mac("idempotency body", q.Query, q.Content)
	wait := time.NewTimer(ReplyWait)
	defer wait.Stop()
	for {
		f, mine := r.enter(id, print, q.By)
		if mine {
			return r.begin(ctx, id, f, wait.C)
		}
		if !hmac.Equal(f.print, print) {
			return nil, nil, ErrMismatch
		}
		select {
		case <-f.done:
			switch {
			case f.reply != nil && f.by == q.By:
				return f.reply, nil, nil
			case f.reply != nil:
				return f.bare, nil, nil
			}
		case <-wait.C:
			return nil, nil, ErrInFlight
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (r *Replies) enter(id string, print []byte, by string) (f *flight, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.flights[id]; f != nil {
		return f, false
	}
	f = &flight{print: print, by: by, done: make(chan struct{})}
	r.flights[id] = f
	return f, true
}

func (r *Replies) leave(id string, f *flight, reply, bare *Reply) {
	r.mu.Lock()
	delete(r.flights, id)
	r.mu.Unlock()
	f.reply, f.bare = reply, bare
	close(f.done)
}

// begin returns a stored answer or a slot. While another host carries out an equal request, it waits for its answer
// until late. Only the holder of the flight calls it.
func (r *Replies) begin(ctx context.Context, id string, f *flight, late <-chan time.Time) (*Reply, *Slot, error) {
	for {
		kept, bare, err := r.kept(ctx, id, f)
		claimed := false
		if err == nil && kept == nil && r.members != nil {
			if err = r.claim(ctx, id, f); err == nil {
				claimed = true
				kept, bare, err = r.kept(ctx, id, f) // the answer may have come before the claim
			}
		}
		if err == nil && kept == nil {
			return nil, &Slot{r: r, id: id, flight: f}, nil
		}
		if !errors.Is(err, errClaimed) {
			if claimed {
				r.unclaim(id)
			}
			r.leave(id, f, kept, bare)
			return kept, nil, err
		}
		select {
		case <-time.After(claimLook):
			continue
		case <-late:
			err = ErrInFlight
		case <-ctx.Done():
			err = ctx.Err()
		}
		r.leave(id, f, nil, nil)
		return nil, nil, err
	}
}

// kept returns the stored answer: reply in full for the principal that received it, and bare
// without one-time secrets for others.
func (r *Replies) kept(ctx context.Context, id string, f *flight) (reply, bare *Reply, err error) {
	d, err := r.store.Document(ctx, store.Replies, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var s storedReply
	if err := json.Unmarshal(d.Data, &s); err != nil {
		return nil, nil, fmt.Errorf("read kept answer: %w", err)
	}
	if !hmac.Equal(s.Print, f.print) {
		return nil, nil, ErrMismatch
	}
	bare = &Reply{Status: s.Status, Body: s.Body, Location: s.Location}
	if body, ok := r.seal.open(s.Sealed, sealedFor(id, f.by)); ok {
		return &Reply{Status: s.Status, Body: body, Location: s.Location}, bare, nil
	}
	if err := r.lead(ctx, s, bare); err != nil {
		return nil, nil, err
	}
	return bare, bare, nil
}

// lead adds to an answer without its one-time secret which other host can still show it, if any can.
func (r *Replies) lead(ctx context.Context, s storedReply, bare *Reply) error {
	if r.members == nil || s.Epoch == "" || s.Epoch == r.members.Self().Epoch || !r.seal.fresh(s.Sealed) {
		return nil
	}
	all, err := r.members.Members(ctx)
	if err != nil {
		return fmt.Errorf("list hosts: %w", err)
	}
	i := slices.IndexFunc(all, func(m store.Member) bool { return m.Epoch == s.Epoch })
	if i < 0 {
		return nil
	}
	at := all[i].ID
	if u := all[i].URL; strings.HasPrefix(u, "https://") || strings.HasPrefix(u, "http://") {
		at = u
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(bare.Body, &body); err != nil {
		return fmt.Errorf("read kept answer: %w", err)
	}
	if body["secretAt"], err = json.Marshal(at); err == nil {
		bare.Body, err = json.Marshal(body)
	}
	return err
}

// sealedFor returns the id to which a sealed answer is bound.
func sealedFor(id, by string) string { return id + " " + by }

// A Slot is the right to carry out one idempotent request. It is for one goroutine. All methods of
// a nil Slot, for a request without a key, do nothing.
type Slot struct {
	r       *Replies
	id      string
	flight  *flight
	omit    []string
	carried *Reply // of the latest Writes
}

// Omit names members of the answer's body that are shown once. Answers repeated after SealLife, or
// after a restart, lack them and have secretOmitted. So do those repeated at another host, which have secretAt, too:
// the address of the host that can show them, or its id. It must precede Writes and Finish.
func (s *Slot) Omit(members ...string) {
	if s != nil {
		s.omit = append(s.omit, members...)
	}
}

// Writes returns the record of an answer, to be stored in the same commit as the effect that it
// reports. It may be called again if the commit is retried; Finish must then be called with the
// same answer.
func (s *Slot) Writes(status int, body []byte, location string) []store.Write {
	if s == nil {
		return nil
	}
	w, err := s.write(status, body, location)
	if err != nil || w == nil {
		return nil
	}
	s.carried = &Reply{status, slices.Clone(body), location}
	return s.r.settling(s.id, *w)
}

// Kept returns the answer stored by now, or nil if there is none: of another host that carried out
// an equal request, or of a commit that only seemed to fail.
func (s *Slot) Kept(ctx context.Context) (*Reply, error) {
	if s == nil || s.flight == nil {
		return nil, nil
	}
	reply, _, err := s.r.kept(ctx, s.id, s.flight)
	return reply, err
}

// Finish ends the request with its answer. Unless its Writes were part of a commit, it stores the
// answer: for a day, or a 429 for retryAfter. Waiting duplicates get the answer whether or not it
// could be stored.
func (s *Slot) Finish(ctx context.Context, status int, body []byte, location string, retryAfter time.Duration) error {
	if s == nil || s.flight == nil {
		return nil
	}
	reply := &Reply{status, slices.Clone(body), location}
	bare := reply
	if s.omit != nil && status < 300 {
		less, err := without(body, s.omit)
		if err != nil {
			s.Abandon()
			return err
		}
		bare = &Reply{status, less, location}
	}
	defer func() {
		s.r.leave(s.id, s.flight, reply, bare)
		s.flight = nil
	}()
	if c := s.carried; c != nil && c.Status == status && bytes.Equal(c.Body, body) {
		return nil
	}
	w, err := s.write(status, body, location)
	if err != nil || w == nil {
		s.r.unclaim(s.id)
		return err
	}
	if status == 429 {
		w.ExpiresAt = s.r.now().Add(retryAfter)
	}
	err = s.r.store.Write(ctx, s.r.settling(s.id, *w)...)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return nil // a commit that reported failure was durable after all; its answer stays
	}
	return err
}

// Abandon ends the request without an answer, so the next equal one is carried out. It does nothing
// after Finish.
func (s *Slot) Abandon() {
	if s == nil || s.flight == nil {
		return
	}
	s.r.unclaim(s.id)
	s.r.leave(s.id, s.flight, nil, nil)
	s.flight = nil
}

// write returns the record of an answer, or nil if it is not stored.
func (s *Slot) write(status int, body []byte, location string) (*store.Write, error) {
	life := ReplyLife
	switch {
	case status == 400 || status == 401 || status == 403 || len(body) > maxReply:
		return nil, nil
	case status == 503 && s.r.members != nil:
		return nil, nil // another host may do it
	case status >= 500:
		life = ReplyFailed
	}
	kept := storedReply{Print: s.flight.print, Status: status, Body: body, Location: location}
	if s.omit != nil && status < 300 {
		var err error
		if kept.Body, err = without(body, s.omit); err != nil {
			return nil, err
		}
		kept.Sealed = s.r.seal.seal(body, sealedFor(s.id, s.flight.by))
		if s.r.members != nil {
			kept.Epoch = s.r.members.Self().Epoch
		}
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	return &store.Write{Kind: store.Replies, ID: s.id, Data: data, If: store.Absent(),
		ExpiresAt: s.r.now().Add(life)}, nil
}

// ValidKey reports whether an idempotency key is valid.
func ValidKey(key string) bool {
	if len(key) < 1 || len(key) > 255 {
		return false
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}
