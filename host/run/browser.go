package run

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// Browser is the browser binding of one run; *browser.Session is one. Handle is
// called beside the loop, one call at a time; the other methods, but for Probe, Page
// and Close, return at once and may be called while it is. The run closes it, once,
// before its terminal event, and calls nothing of it afterwards. It aborts a
// call in progress before, and waits a moment for it to return.
type Browser interface {
	// Begin names the run and gives the binding its way back into it. It is called
	// once, before everything else; a run that is not accepted only closes it.
	Begin(runID string, back BrowserRun)
	Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno)
	// Owns reports whether a stream handle (of read and close) is the binding's. Its
	// handles are from HandlesOf on, so that none is also the network's.
	Owns(handle uint32) bool
	// Seal lets a handle stand for a value that may be typed at the destinations
	// whose placements have browser_fill, maybe none; forms are the encodings in
	// which a page may give it back.
	Seal(field, handle, value string, forms [][]byte, to []abi.Destination)
	// Surface is the attachment that an item has now, as far as is
	// known.
	Surface() abi.Attachment
	// Probe is Surface behind one probe, for a watched interaction that is about to
	// open. It ends with ctx and is called where Registered.
	Probe(ctx context.Context) abi.Attachment
	// Page is what the owner is told of the page that a question is about: its
	// title and the host of its address, "" where they are not known. A page that hangs
	// is not waited for. It is called where Registered.
	Page(ctx context.Context) (title, host string)
	// Registered reports whether a surface is registered for the run.
	Registered() bool
	// Asked and Answered tell of interactions of the owner's while they are open:
	// manual_action and otp are watched. Assisted is the same for assistance.
	Asked(id, kind string, until time.Time)
	Answered(id string)
	Assisted(id string, a *abi.AssistanceMessage) // nil: it is over
	// Paused stops the clocks of the binding while the run stands still.
	Paused(on bool)
	// Spent reports that a stored secret may have reached a server while a session was
	// made that did not come about: a run that fails then is not retried.
	Spent() bool
	// Close releases the surface; what it says meanwhile is recorded. It ends with
	// ctx.
	Close(ctx context.Context) error
}

// HandlesOf is the first stream handle of a browser binding: all below are
// the network's.
const HandlesOf uint32 = 1 << 30

// ErrNotInteractive is the error of BrowserRun.Ask where nobody can be asked.
var ErrNotInteractive = errors.New("the run has no interactive binding")

// ErrEnding is the error of BrowserRun.Ask in a run that is ending, or whose owner
// is being asked something else.
var ErrEnding = errors.New("the run asks nothing now")

// BrowserRun is the run as its browser sees it. Every method may be called from
// any goroutine, keeps the order of calls, and, but for Ask, returns at once; once
// the run is over they do nothing.
type BrowserRun interface {
	// Event records one event of the catalogue of the kind run.browser_* or
	// run.stream_*. Data is closed: nothing of it is a secret or a page's text. A
	// run.browser_action with status failed is a failure.
	Event(typ, status string, data map[string]any)
	// SealedUsed records run.sealed_value_used once for each field, origin and
	// placement.
	SealedUsed(field, origin, placement string)
	// Progress is a host-authored progress message.
	Progress(message string)
	// Lost says that the surface is gone. A watched interaction is closed as
	// cancelled by compare-and-swap, then run.browser_surface_lost is recorded; without one run.browser_surface_failed is.
	Lost(surfaceID string, p BrowserProbe)
	// Attachment changes what open items say of the surface: run.assistance_updated
	//.
	Attachment(a abi.Attachment)
	// Ask raises a manual_action of the host's own and waits for its end: the
	// status is that of an interaction's answer. ErrNotInteractive without an owner,
	// ErrEnding where none can be asked any more.
	Ask(ctx context.Context, message string, timeout time.Duration) (id, status string, err error)
	// End ends collection as failed, whatever the guest does next.
	End(f BrowserFailure)
	// Artifact registers a file that the binding left for the owner: it gets an id and
	// artifact.created. The file is where it belongs by then.
	Artifact(a BrowserArtifact)
}

// BrowserArtifact is a file that a browser leaves of a run. Nothing of it is a
// page's.
type BrowserArtifact struct {
	Type      string // browser-trace
	Summary   string
	MediaType string
	Size      int64  // in bytes
	Digest    string // sha256:… of its content
}

// BrowserProbe is the result of a probe.
type BrowserProbe struct {
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// BrowserFailure is why a run cannot go on without its browser.
type BrowserFailure struct {
	Code      string // session_not_live or session_establish_timeout
	Message   string
	Retryable bool
	Hint      string // manual_action_required or ""
}
