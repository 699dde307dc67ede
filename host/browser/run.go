package browser

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

// A Run is the run as its browser sees it. Every method may be called from any
// goroutine, keeps the order of calls, and, but for Ask, returns at once; once the
// run is over they do nothing. See run.BrowserRun, of which this is the shape.
type Run interface {
	Event(typ, status string, data map[string]any)
	SealedUsed(field, origin, placement string)
	Progress(message string)
	Lost(surfaceID string, p fleet.Probe)
	Attachment(a abi.Attachment)
	Ask(ctx context.Context, message string, timeout time.Duration) (id, status string, err error)
	End(f Failure)
	Artifact(a Artifact)
}

// ErrNotInteractive is what Run.Ask returns where nobody can be asked.
var ErrNotInteractive = errors.New("the run has no interactive binding")

// A Failure is why a run cannot go on without its browser (B187, B191).
type Failure struct {
	Code      string // session_not_live or session_establish_timeout
	Message   string
	Retryable bool
	Hint      string // manual_action_required or ""
}

// An Artifact is a file that a run leaves for its owner.
type Artifact struct {
	Type      string // browser-trace
	Summary   string // of the host's own making
	MediaType string
	Size      int64  // in bytes
	Digest    string // sha256:… of its content
}
