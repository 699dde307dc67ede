package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// Checkpoints that the host sets itself (B189).
const (
	PhaseBegin      = "session-establish:begin"
	PhaseProbe      = "session-establish:probe"
	PhaseProbeAgain = "session-establish:probe-after-manual"
)

// States of a session (B186 to B188).
const (
	SessionLive      = "live"
	SessionRecovered = "recovered"
	SessionNotProbed = "not_probed"
)

// ErrNobody is what Flow.Ask returns when nobody can be asked.
var ErrNobody = errors.New("nobody can be asked")

// A Flow finds out whether somebody is signed in, and asks the owner to if not
// (B186, B187).
type Flow struct {
	// Probe goes to the address of the probe and tells whether its condition holds.
	// nil: the session is taken as it is (B188).
	Probe func(ctx context.Context) (live bool, err error)
	Login func(ctx context.Context) // goes to where one signs in; what fails there, the owner sees
	// Ask asks the owner to sign in, and returns when the question is over, whatever
	// its status is. nil where nobody can be asked; ErrNobody says so later.
	Ask     func(ctx context.Context, message string, timeout time.Duration) (id string, err error)
	Message string
	Timeout time.Duration
	Mark    func(phase string) // told of each checkpoint
}

// An Established session.
type Established struct {
	State         string
	InteractionID string // "" when nobody was asked
}

// Run makes the session. The error is session_not_live, whatever the reason, but
// for the errors of the callbacks, which pass through (B191).
func (f Flow) Run(ctx context.Context) (Established, error) {
	if f.Probe == nil {
		return Established{State: SessionNotProbed}, nil
	}
	f.Mark(PhaseBegin)
	f.Mark(PhaseProbe)
	live, err := f.Probe(ctx)
	if err != nil || live {
		return Established{State: SessionLive}, err
	}
	if f.Ask == nil {
		return Established{}, notLive("the session is not live, and nobody can be asked to sign in")
	}
	f.Login(ctx)
	id, err := f.Ask(ctx, f.Message, f.Timeout)
	if errors.Is(err, ErrNobody) {
		return Established{}, notLive("the session is not live, and nobody can be asked to sign in")
	}
	if err != nil {
		return Established{}, err
	}
	f.Mark(PhaseProbeAgain)
	live, err = f.Probe(ctx)
	if err != nil {
		return Established{}, err
	}
	if !live {
		return Established{InteractionID: id}, notLive("the session is still not live after the owner was asked to sign in")
	}
	return Established{SessionRecovered, id}, nil
}

func notLive(message string) *engine.Refusal {
	return &engine.Refusal{Code: "session_not_live", Verb: engine.Open, Message: message}
}
