package store

import (
	"context"
	"time"
)

// A Member is a host that shares a store with others.
type Member struct {
	ID    string `json:"id"`    // of the host; no two members have the same
	Epoch string `json:"epoch"` // of this start of it
	About
	Draining bool      `json:"draining"`
	JoinedAt time.Time `json:"joined_at"`
	SeenAt   time.Time `json:"seen_at"` // its newest heartbeat
	// Runs are the active ones that it holds.
	Runs int `json:"runs"`
}

// About is what a host tells the others of itself.
type About struct {
	Name     string   `json:"name"` // of its machine
	PID      int      `json:"pid"`
	Version  string   `json:"version"`
	Labels   []string `json:"labels"`
	Capacity int      `json:"capacity"` // runs that execute at once; 0 for a host that starts none by schedule
	URL      string   `json:"url"`      // where its pages are; "" when it has not said
	// Key is public; what is sealed with it only this start of the host can open.
	Key []byte `json:"key,omitempty"`
	// KeyCode is a code of Key that only hosts can make which are admitted to the vault.
	KeyCode []byte `json:"key_code,omitempty"`
}

// Members are the hosts that share a store. A driver whose store one host has to itself has
// none (MembersOf).
//
// A host is a member from when it opens the store until it closes it, or until it has not been
// heard of for the time of its lease, by the clock of the server. Then another host removes it,
// and from that moment nothing of it is stored any more: neither of its runs nor of itself.
type Members interface {
	// Self is this host. It asks nobody.
	Self() Member
	// Announce replaces what others are told of this host.
	Announce(ctx context.Context, a About) error
	// Members lists those that live, by name and id.
	Members(ctx context.Context) ([]Member, error)
	// Lost lists the hosts that others removed and that have not joined since, by id, as they were then.
	Lost(ctx context.Context) ([]Member, error)
	// Drain sets whether a member is to start no more runs; ErrNotFound.
	Drain(ctx context.Context, id string, on bool) error
	// Lead reports whether this host does what one of all hosts does, and makes it the one when
	// there is none. It stays that until it yields, or is no member any more.
	Lead(ctx context.Context) (bool, error)
	Yield(ctx context.Context) error
	// Leader is the epoch of the host that leads, "" when there is none.
	Leader(ctx context.Context) (epoch string, err error)
	// Changed returns a channel of capacity 1 that gets a wake-up after a member came or went,
	// and after a document of the kind was written, wherever that was; kind "" is for members
	// alone. Some are for nothing, and while the server is not there some are lost: look now
	// and again too. stop releases it.
	Changed(kind Kind) (wake <-chan struct{}, stop func())
	// Removed is closed once this host is no member any more; Err of it says why.
	Removed() <-chan struct{}
	Err() error
	// Alive is nil while no other host can have removed this one, and otherwise ErrSilent, though it may
	// be a member still. It asks nobody: it is for right before what leaves this host for where the
	// store refuses nothing.
	Alive() error
	// Now is the server's clock.
	Now() time.Time
}

// Modules keep modules by their digest, for the hosts that share a store. What they return is
// looked at by its digest before it is used.
type Modules interface {
	PutModule(ctx context.Context, d Digest, wasm []byte) error
	// Module returns one; ErrNotFound.
	Module(ctx context.Context, d Digest) ([]byte, error)
}

// A Pace is how often an origin may be asked.
type Pace struct {
	Every time.Duration // a turn
	Burst int           // turns that may come at once when the origin was left alone
}

// Turns keep the pace of all hosts that share a store toward the origins that their connectors
// ask, by the clock of the server. A server that crashes forgets them.
type Turns interface {
	// TakeTurns takes n turns with an origin. The first comes in first, the others p.Every
	// after each other; what is not above 0 has come. closed is how long the origin stays
	// closed, and no turn comes before.
	TakeTurns(ctx context.Context, origin string, n int, p Pace) (first, closed time.Duration, err error)
	// CloseOrigin lets no turn come that is not taken yet until stop is over, and then one
	// after the other.
	CloseOrigin(ctx context.Context, origin string, stop time.Duration, p Pace) error
}

// TurnsOf returns the turns of the hosts that share s; nil when one host has it to itself.
func TurnsOf(s any) Turns {
	t, _ := s.(Turns)
	return t
}

// ModulesOf returns the modules that s keeps; nil when it keeps none.
func ModulesOf(s any) Modules {
	m, _ := s.(Modules)
	return m
}

// MembersOf returns the hosts that share s; nil when one host has it to itself.
func MembersOf(s any) Members {
	m, _ := s.(Members)
	return m
}
