package binding

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Speaker has something to say to its run. It is closed before the terminal event, so
// that what it says meanwhile is recorded; other bindings are closed after it.
type Speaker interface {
	// Begin names the run and gives the binding its way back into it. It is called
	// once, before everything else.
	Begin(runID string, back Run)
}

// A Run is the run as a binding sees it. Every method may be called from any goroutine,
// keeps the order of calls, and, but for Ask, returns at once; once the run is over they
// do nothing.
type Run interface {
	// Event records one event of the kind run.browser_* or run.stream_*. Data is
	// closed: nothing of it is a secret or a page's text. A run.browser_action with
	// status failed is a failure.
	Event(typ, status string, data map[string]any)
	// SealedUsed records run.sealed_value_used once for each field, origin and
	// placement.
	SealedUsed(field, origin, placement string)
	// Progress is a host-authored progress message.
	Progress(message string)
	// Lost says that the surface is gone. A watched question is closed as cancelled by
	// compare-and-swap, then run.browser_surface_lost is recorded; without one
	// run.browser_surface_failed is.
	Lost(surfaceID string, p Probe)
	// Attachment changes what open items say of the surface:
	// run.assistance_updated.
	Attachment(a abi.Attachment)
	// Ask raises a manual_action of the host's own and waits for its end: the status is
	// that of an interaction's answer. ErrNotInteractive without an owner, ErrEnding
	// where none can be asked any more.
	Ask(ctx context.Context, message string, timeout time.Duration) (id, status string, err error)
	// End ends collection as failed, whatever the guest does next.
	End(f Failure)
	// Artifact registers a file that the binding left for the owner: it gets an id and
	// artifact.created. The file is where it belongs by then.
	Artifact(a Artifact)
}

// ErrNotInteractive is the error of Run.Ask where nobody can be asked.
var ErrNotInteractive = errors.New("the run has no interactive binding")

// ErrEnding is the error of Run.Ask in a run that is ending, or whose owner is being
// asked something else.
var ErrEnding = errors.New("the run asks nothing now")

// An Artifact is a file that a binding leaves of a run. Nothing of it is a page's.
type Artifact struct {
	Type      string // browser-trace
	Summary   string
	MediaType string
	Size      int64  // in bytes
	Digest    string // sha256:… of its content
}

// A Probe is the result of a look whether a surface lives.
type Probe struct {
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// A Failure is why a run cannot go on without its binding.
type Failure struct {
	Code      string // session_not_live or session_establish_timeout
	Message   string
	Retryable bool
	Hint      string // manual_action_required or ""
}
