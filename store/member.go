package store

import (
	"context"
	"time"
)

// A Member is a host that shares a store with others.
type Member struct {
	ID    string `json:"id"`    // unique among members
	Epoch string `json:"epoch"` // of this start of the host
	About
	Draining bool      `json:"draining"`
	JoinedAt time.Time `json:"joined_at"`
	SeenAt   time.Time `json:"seen_at"` // of its last heartbeat
	// Runs is the number of active runs that it holds.
	Runs int `json:"runs"`
}

// About is what a host tells other hosts of itself.
type About struct {
	Name     string   `json:"name"` // of its machine
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
	Labels   []string `json:"labels"`
	Capacity int      `json:"capacity"` // runs at once; 0 if it starts none by schedule
	URL      string   `json:"url"`      // of its pages; "" if unknown
	// Key is a public key. Only this start of the host can open what is sealed with it.
	Key []byte `json:"key,omitempty"`
	// KeyCode authenticates Key. Only hosts that are admitted to the vault can make it.
	KeyCode []byte `json:"key_code,omitempty"`
}

// Members are the hosts that share a store. A driver for a single host has none
// (MembersOf).
//
// A host is a member from opening the store until it closes it, or until it has sent no
// heartbeat for the time of its lease, by the clock of the server. Another host then
// removes it, and from that moment nothing it writes is stored, neither of its runs nor of
// itself.
type Members interface {
	// Self returns this host, without I/O.
	Self() Member
	// Announce replaces what other hosts are told of this one.
	Announce(ctx context.Context, a About) error
	// Members lists the live members, by name and id.
	Members(ctx context.Context) ([]Member, error)
	// Lost lists by id, in their last state, the hosts that others removed and that have
	// not rejoined.
	Lost(ctx context.Context) ([]Member, error)
	// Drain sets whether a member starts no more runs, or returns ErrNotFound.
	Drain(ctx context.Context, id string, on bool) error
	// Lead reports whether this host performs the duties of the leader, and makes it the
	// leader if there is none. It stays leader until it yields or is no longer a member.
	Lead(ctx context.Context) (bool, error)
	Yield(ctx context.Context) error
	// Leader returns the epoch of the leader, or "".
	Leader(ctx context.Context) (epoch string, err error)
	// Changed returns a channel of capacity 1 that receives a wake-up after a member came
	// or left, and after any host wrote a document of the kind; "" is for members only.
	// There may be spurious wake-ups, and some are lost while the server is unreachable, so
	// poll occasionally too. stop releases the channel.
	Changed(kind Kind) (wake <-chan struct{}, stop func())
	// Removed is closed when this host is no longer a member; Err then says why.
	Removed() <-chan struct{}
	Err() error
	// Alive returns nil while no other host can have removed this one, and otherwise ErrSilent,
	// although it may still be a member. It does no I/O. Call it right before an effect outside
	// of the store, which the store cannot refuse.
	Alive() error
	// Now returns the server's time.
	Now() time.Time
}

// Modules stores modules by digest for the hosts that share a store. Callers verify the
// digest of what it returns.
type Modules interface {
	PutModule(ctx context.Context, d Digest, wasm []byte) error
	// Module returns a module, or ErrNotFound.
	Module(ctx context.Context, d Digest) ([]byte, error)
}

// A RateLimit is the rate of requests to an origin.
type RateLimit struct {
	Every time.Duration // time per turn
	Burst int           // turns at once after a period without any
}

// SharedRateLimiter enforces a rate limit for each origin across the hosts that share a store, by the
// clock of the server. A crash of the server resets it.
type SharedRateLimiter interface {
	// TakeTurns takes n turns with an origin. The first is due after first, the others at
	// intervals of p.Every; a duration of 0 or less is due now. closed is how long the
	// origin stays closed, during which no turn is due.
	TakeTurns(ctx context.Context, origin string, n int, p RateLimit) (first, closed time.Duration, err error)
	// CloseOrigin delays all turns that are not taken yet until stop is over; after that
	// they are due one by one.
	CloseOrigin(ctx context.Context, origin string, stop time.Duration, p RateLimit) error
}

// SharedRateLimiterOf returns the SharedRateLimiter of s; nil if s is not shared.
func SharedRateLimiterOf(s any) SharedRateLimiter {
	t, _ := s.(SharedRateLimiter)
	return t
}

// ModulesOf returns the Modules of s, or nil.
func ModulesOf(s any) Modules {
	m, _ := s.(Modules)
	return m
}

// MembersOf returns the Members of s; nil if s is not shared.
func MembersOf(s any) Members {
	m, _ := s.(Members)
	return m
}
