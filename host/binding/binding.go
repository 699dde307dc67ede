// Package binding defines bindings: the capabilities that a run can be given, such as the
// network, directories or a browser.
//
// A run knows its bindings only by the interfaces here. [Binding] is common to all; the
// others are optional roles. host/app decides which bindings a run gets: a new one is a
// package that implements Binding, and a line there.
//
// The package is pure. A binding trusts the run that calls it, but not payloads, which come
// from the guest.
package binding

import (
	"context"
	"io"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Binding serves the calls of one capability to one guest.
//
// Handle is called outside the run's loop, one call at a time, with a context that ends the
// call. All other methods, including those of the roles, may be called concurrently with
// Handle and return at once unless they have a context. The run closes a binding exactly
// once and calls nothing afterwards; a binding that no run accepted is only closed.
type Binding interface {
	// Takes reports whether a call is for this binding: one of its functions, or a read or
	// close of one of its handles. It is called from the loop.
	Takes(call abi.Call, payload []byte) bool
	// Handle serves a call for which Takes returned true. With an errno the reply is its
	// error text.
	Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno)
	// Close releases the binding's resources. Calls in progress have been aborted.
	Close(ctx context.Context) error
}

// A Sealer replaces handles with values where these may be sent.
type Sealer interface {
	// Seal registers the value of a handle and the destinations at which this binding may
	// insert it, possibly none. forms are the encodings in which answers may contain the
	// value.
	Seal(field, handle, value string, forms [][]byte, to []abi.Destination)
}

// A Keeper handles secrets in the guest's requests and their answers.
type Keeper interface {
	// Protect keeps a value that the guest knows in plain text out of recordings.
	Protect(field, value string, forms [][]byte)
	// SealCurrent registers a handle whose value is obtained by from when a request is
	// made, or again when a server refused the previous value.
	SealCurrent(field, handle string, from func(ctx context.Context, refused string) (string, error), to []abi.Destination)
	// Echo makes the binding search answers for encodings of a value and replace them with
	// the handle.
	Echo(handle string, forms [][]byte)
	// SealTokens makes values at these places of answers handles. mint makes the nth handle
	// of a field, from any goroutine, before the guest sees the answer.
	SealTokens(places []abi.SessionToken, mint func(field string, n int, value string) (handle string, forms [][]byte))
	// Uses yields each place to which values have been sent since the last call.
	Uses(yield func(field, origin, placement string))
}

// A StreamTaker transfers a stream handle from the guest to the host.
type StreamTaker interface {
	// TakeStream removes a handle from the guest and returns its content as the guest would read
	// it, with handles for sealed values. Reads end with ctx; their errors are a Fault or
	// io.EOF. It is not called during Handle. The caller closes the reader.
	TakeStream(ctx context.Context, handle uint32) (io.ReadCloser, error)
}

// A Fault is an error with a reply for the guest.
type Fault interface {
	error
	Reply() (text []byte, errno abi.Errno)
}

// A Requester makes requests for the guest.
type Requester interface {
	// OnRateWait sets a function that is called during Handle when a request waits for the rate
	// limiter of an origin, and with a zero time when it goes on.
	OnRateWait(f func(origin string, until time.Time))
	// Fault returns why the run cannot go on, or with gone, after the guest's exit, why it
	// does not count: recording or replaying failed. Empty strings mean no fault.
	Fault(gone bool) (code, message string)
	// Abort ends current and future requests. It does not wait.
	Abort()
}

// A StateSaver can pass its state to the binding of another process when a run is suspended.
type StateSaver interface {
	// SaveState returns the state to pass on, nil if there is none, or why it cannot be passed
	// on, as words after "The question does not outlive its host: ". Unfinished work
	// prevents it unless breakOff is set; the guest then learns that it broke off when it
	// continues with it.
	SaveState(breakOff bool) (held []byte, why string)
	// RestoreState restores what SaveState returned, before the first call.
	RestoreState(held []byte) error
	// LostReply serves a call that was made before but whose answer is lost, without making it
	// again.
	LostReply(call abi.Call, payload []byte) ([]byte, abi.Errno)
}

// A Pauser has clocks that stop while the run is paused.
type Pauser interface {
	Paused(on bool)
}

// A Spender may consume secrets that can be used only once.
type Spender interface {
	// Spent reports that a stored secret may have reached a server although no session was
	// established. A run that then fails is not retried.
	Spent() bool
}

// A Screen is a binding that an owner can see and operate.
type Screen interface {
	// Registered reports whether there is a surface.
	Registered() bool
	// Surface returns the attachment in its last known state.
	Surface() abi.Attachment
	// Probe returns the attachment after a probe, for a question that is about to open. It
	// ends with ctx. It requires Registered.
	Probe(ctx context.Context) abi.Attachment
	// Page returns the title and the host of the page to which a question refers, or "" for
	// what is unknown. It does not wait for a page that hangs. It requires Registered.
	Page(ctx context.Context) (title, host string)
	// Asked and Answered report the open questions to the owner; those of kinds
	// manual_action and otp end when the surface is lost. Assisted does the same for
	// assistances.
	Asked(id, kind string, until time.Time)
	Answered(id string)
	Assisted(id string, a *abi.AssistanceMessage) // nil when it has ended
}

// HandlesOf is the first stream handle of a browser. Lower ones belong to the network, so
// that each handle has one owner.
const HandlesOf uint32 = 1 << 30

// Handle returns the stream handle in a read or close call. ok is false for other calls.
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
