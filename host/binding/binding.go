// Package binding says what a binding is: one capability that a run was lent, such as
// the network, directories or a browser.
//
// A run knows its bindings only by the interfaces here. [Binding] is what all of them
// do; the others are roles, and a binding has those that it needs. Which bindings there
// are, and what each was approved for, is decided where a run is made: a new one is a
// package that implements Binding, and a line there.
//
// The package is pure. A binding trusts the run that calls it and nothing in a payload:
// those are a guest's.
package binding

import (
	"context"
	"io"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Binding serves the calls of one capability to one guest.
//
// Handle is called beside the run's loop, one call at a time, and ends with its context.
// All other methods, those of the roles included, return at once unless they have a
// context, and may be called while Handle is. The run closes a binding exactly once and
// calls nothing of it afterwards; one that was never accepted is only closed.
type Binding interface {
	// Takes reports whether a call is this binding's: one of its own functions, or a
	// read or close of a handle that came of one. It is asked from the loop.
	Takes(call abi.Call, payload []byte) bool
	// Handle serves a call that Takes. A reply beside an errno is its error text.
	Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno)
	// Close releases what the binding holds. Calls that are on their way have been
	// aborted.
	Close(ctx context.Context) error
}

// A Sealer puts values in the place of handles, where they may go.
type Sealer interface {
	// Seal lets a handle stand for a value at the destinations whose placements are
	// the binding's, maybe none. forms are the encodings in which answers may give the
	// value back.
	Seal(field, handle, value string, forms [][]byte, to []abi.Destination)
}

// A Keeper keeps secrets that come and go with requests from the guest.
type Keeper interface {
	// Protect keeps a value that the guest has in plain out of a recording.
	Protect(field, value string, forms [][]byte)
	// SealCurrent lets a handle stand for what from returns when a request is made, or
	// when a server refused an earlier value of it.
	SealCurrent(field, handle string, from func(ctx context.Context, refused string) (string, error), to []abi.Destination)
	// Echo has answers searched for encodings of a value.
	Echo(handle string, forms [][]byte)
	// SealTokens has values in answers become handles. mint makes the nth of a field,
	// from any goroutine, before the guest sees it.
	SealTokens(places []abi.SessionToken, mint func(field string, n int, value string) (handle string, forms [][]byte))
	// Uses yields, once each, where values have been sent since the last call.
	Uses(yield func(field, origin, placement string))
}

// A Giver hands what a stream handle stands for to the host.
type Giver interface {
	// Give ends a handle: the guest has it no more. What is read is what the guest would
	// read, with handles for sealed values, and ends with ctx; its errors are a Fault or
	// io.EOF. Like a call, it comes while no other is served. The caller closes it.
	Give(ctx context.Context, handle uint32) (io.ReadCloser, error)
}

// A Fault is an error that has a reply for the guest.
type Fault interface {
	error
	Reply() (text []byte, errno abi.Errno)
}

// A Requester makes requests for the guest that take their time.
type Requester interface {
	// Waits has f told, while Handle serves a call, that a request waits for its turn
	// with an origin, and with a zero time that it goes on.
	Waits(f func(origin string, until time.Time))
	// Fault says why the run cannot go on or, once the guest is gone, why it does not
	// count: it is recorded or replayed, and that failed. Empty texts are no reason.
	Fault(gone bool) (code, message string)
	// Abort ends the requests that are on their way, and those that follow. It does not
	// wait.
	Abort()
}

// A Holder can give what it holds for a run on to the binding of another process, when the run
// is put down.
type Holder interface {
	// Held is what there is to give on, nil for nothing, or why it cannot be given on, in
	// words after "The question does not outlive its host: ". What is half done is such a reason,
	// unless it may break off: then the guest is told so when it goes on with it.
	Held(breakOff bool) (held []byte, why string)
	// Hold takes what Held gave, before it serves a call.
	Hold(held []byte) error
	// Lost serves a call that was made before, and whose answer nobody has, without making it again.
	Lost(call abi.Call, payload []byte) ([]byte, abi.Errno)
}

// A Pauser has clocks that stop while the run stands still.
type Pauser interface {
	Paused(on bool)
}

// A Spender may use up what its owner gave.
type Spender interface {
	// Spent reports that a stored secret may have reached a server while a session was
	// made that did not come about: a run that fails then is not retried.
	Spent() bool
}

// A Screen is a binding that an owner can look at and act in.
type Screen interface {
	// Registered reports whether there is a surface.
	Registered() bool
	// Surface is the attachment that an item has now, as far as is known.
	Surface() abi.Attachment
	// Probe is Surface behind one probe, for a question that is about to open. It ends
	// with ctx and is called where Registered.
	Probe(ctx context.Context) abi.Attachment
	// Page is what the owner is told of the page that a question is about: its title
	// and the host of its address, "" where they are not known. A page that hangs is
	// not waited for. It is called where Registered.
	Page(ctx context.Context) (title, host string)
	// Asked and Answered tell of questions to the owner while they are open; those of
	// kinds manual_action and otp end when the surface is lost. Assisted is the same
	// for assistance.
	Asked(id, kind string, until time.Time)
	Answered(id string)
	Assisted(id string, a *abi.AssistanceMessage) // nil: it is over
}

// HandlesOf is the first stream handle of a browser: all below are the network's, so
// that none is both.
const HandlesOf uint32 = 1 << 30

// Handle is the stream handle that a call of read or close names; ok is false for any
// other call.
func Handle(call abi.Call, payload []byte) (handle uint32, ok bool) {
	var err error
	switch call {
	case abi.CallRead:
		handle, _, err = abi.ParseRead(payload)
	case abi.CallClose:
		handle, err = abi.ParseClose(payload)
	default:
		return 0, false
	}
	return handle, err == nil
}
