package binding

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Reporter reports events to its run. It is closed before the terminal event, so that its
// last events are recorded; other bindings are closed after it.
type Reporter interface {
	// Begin gives the binding its run. It is called once, before everything else.
	Begin(runID string, back Run)
}

// A Run is what a binding sees of its run. Methods may be called from any goroutine; calls
// take effect in order and, except for Ask, return at once. After the end of the run they
// do nothing.
type Run interface {
	// Event records an event run.browser_* or run.stream_*. Data must not contain secrets
	// or texts of a page. A run.browser_action with status failed is a failure.
	Event(typ, status string, data map[string]any)
	// SealedUsed records run.sealed_value_used once for each field, origin and
	// placement.
	SealedUsed(field, origin, placement string)
	// Progress records a progress message of the host.
	Progress(message string)
	// Lost reports that the surface is lost. If a question refers to it, that is closed as
	// cancelled by compare-and-swap and run.browser_surface_lost is recorded, otherwise
	// run.browser_surface_failed.
	Lost(surfaceID string, p Probe)
	// Attachment updates the attachment of open items, with run.assistance_updated.
	Attachment(a abi.Attachment)
	// Ask raises a manual_action of the host and waits for its end; status is that of an
	// interaction's answer. It returns ErrNotInteractive without an owner, and ErrEnding if
	// no more questions are possible.
	Ask(ctx context.Context, message string, timeout time.Duration) (id, status string, err error)
	// End ends the collection as failed, whatever the guest does.
	End(f Failure)
	// Artifact registers a file that the binding has stored for the owner. It gets an id
	// and an artifact.created event.
	Artifact(a Artifact)
}

// ErrNotInteractive is returned by Run.Ask if nobody can be asked.
var ErrNotInteractive = errors.New("the run has no interactive binding")

// ErrEnding is returned by Run.Ask if the run is ending, or its owner is being asked
// something else.
var ErrEnding = errors.New("the run asks nothing now")

// An Artifact is a file that a binding leaves. Nothing in it comes from a page.
type Artifact struct {
	Type      string // browser-trace
	Summary   string
	MediaType string
	Size      int64  // in bytes
	Digest    string // sha256:… of its content
}

// A Probe is the result of checking whether a surface is alive.
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
