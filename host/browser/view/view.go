package view

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of sessions.
const (
	TokenLife  = 60 * time.Second // of an unredeemed token
	ResumeLife = 30 * time.Second // of a session whose connection dropped
	// MaxViewers bounds the connections to one run, MaxSessions the sessions, and mintsPerMinute
	// the new sessions.
	MaxViewers     = 8
	MaxSessions    = 32
	mintsPerMinute = 60
)

// Views holds the views of one host: the runs that have a browser, and the sessions of their
// viewers. It is safe for concurrent use.
type Views struct {
	key [32]byte // of this process; tokens derive from it, so a restart invalidates all

	mu       sync.Mutex // guards the fields below; taken before a Run's
	runs     map[string]*Run
	sessions map[string]*session // by view id
	tokens   map[digest]*session
	resumes  map[digest]*session
	replays  map[replay]*session
	stopping bool // Quiesce
	closed   bool

	viewers sync.WaitGroup // connected viewers
	work    sync.WaitGroup // pictures, and changes of leases
}

// New makes Views without runs.
func New() *Views {
	v := &Views{runs: map[string]*Run{}, sessions: map[string]*session{}, tokens: map[digest]*session{},
		resumes: map[digest]*session{}, replays: map[replay]*session{}}
	_, _ = rand.Read(v.key[:]) // never fails
	return v
}

// Quiesce announces that the host is about to stop, which is then the reason given to sessions that
// end.
func (v *Views) Quiesce() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopping = true
}

// Close ends every session and waits for their connections.
func (v *Views) Close() {
	v.mu.Lock()
	v.closed = true
	runs := slices.Collect(maps.Values(v.runs))
	v.mu.Unlock()
	for _, r := range runs {
		v.endAll(r, func(*session) bool { return true }, CloseGoing, ReasonStopping)
		r.End()
	}
	v.viewers.Wait()
	v.work.Wait()
}

// Begin registers a run with a browser binding; its surface may come later. event records
// run.stream_* events and must return at once. Run.End forgets it.
func (v *Views) Begin(run string, s Surface, event func(typ, status string, data map[string]any)) *Run {
	r := &Run{id: run, views: v, surface: s, event: event, viewers: map[*viewer]bool{}}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.runs[run] = r
	return r
}

func (v *Views) run(id string) *Run {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.runs[id]
}

// A Conn is a viewer's connection, which carries whole messages. Read and Write are each called
// from one goroutine. Close may be called from any goroutine and repeatedly, and ends both.
type Conn interface {
	// Read returns the next message, which the caller owns. The Conn bounds messages to MaxMessage.
	Read() (binary bool, message []byte, err error)
	// Write returns within a bound of the Conn and does not retain the message.
	Write(binary bool, message []byte) error
	// Close closes the connection with a close code.
	Close(code int, reason string)
}

// MaxMessage bounds a viewer's message, in bytes. Pieces of a file are the longest.
const MaxMessage = 256 << 10

// A Surface is the holder of the run's browser, as the view needs it. Its methods are called from
// any goroutine, but never Taken and Released concurrently.
type Surface interface {
	// Taken begins the owner's control. It waits for the running verb until ctx ends; after a nil
	// result no verb of the guest touches the page before Released. On an error the lease is not
	// given.
	Taken(ctx context.Context) error
	// Released ends the control: element ids become stale and the revision rises.
	Released()
	// Sealed returns the nodes with values that the guest may not see. They are covered for viewers
	// who only watch.
	Sealed() []page.Ref
	// Upload prepares a file of the owner where the browser can read it. It returns ErrUploads if
	// the connector may not upload.
	Upload(ctx context.Context, name string, size int64) (Upload, error)
}

// ErrUploads means that the binding may not upload.
var ErrUploads = errors.New("uploads are not permitted")

// An Upload is a file being received. The view erases it when the surface ends, or at once if it
// was not used.
type Upload interface {
	io.Writer
	// Path returns the path for the browser, once Done.
	Path() string
	Done() error
	Erase()
}

// Modes of a view.
const (
	ModeView    = "view"
	ModeControl = "control"
)

// A Mint is a request for a view.
type Mint struct {
	Run string
	// Owner is an opaque name of the requesting owner session, for which alone the view works.
	Owner         string
	Mode          string // ModeView or ModeControl
	InteractionID string // "" for the open one
	AssistanceID  string
	Viewport      *page.Viewport // of the viewer, for control
	Key           string         // idempotency key; "" for none
}

// Minted is the answer to a Mint.
type Minted struct {
	ViewID    string
	Token     string // "" if the view was redeemed already
	Mode      string
	ExpiresAt time.Time // of the token
	Replayed  bool
}

// A digest represents a secret; the secret itself is not stored.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// newViewID returns an unguessable id; it grants nothing.
func newViewID() string { return "vw_" + random(16) }

// token returns the one-time secret of a view. It is derived from the view's id, so a replay gets
// the same one and it need not be stored.
func (v *Views) token(viewID string) string {
	mac := hmac.New(sha256.New, v.key[:])
	mac.Write([]byte("sluice live view token\x00" + viewID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// newResume returns a secret for resuming a dropped connection.
func newResume() string { return random(32) }

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// A Refusal says why a view was not minted. Code is one of the codes below or rate_limited. Message
// is for people and contains nothing of the page.
type Refusal struct {
	Code    string
	Message string
}

func (e *Refusal) Error() string { return e.Code + ": " + e.Message }

func refuse(code, message string) error { return &Refusal{Code: code, Message: message} }

// Codes of refusals.
const (
	CodeRequest     = "invalid_request"
	CodeNoPending   = "no_pending_interaction"
	CodeMismatch    = "interaction_id_mismatch"
	CodeKind        = "stream_not_supported_for_kind"
	CodeUnavailable = "browser_surface_unavailable"
	CodeLimited     = "rate_limited"
)

// Close codes of connections.
const (
	CloseDone         = 1000 // bye, revoked, or the purpose is over
	CloseGoing        = 1001 // the host stops
	CloseTooBig       = 1009
	CloseBusy         = 1013 // too many viewers, or one that is too slow
	CloseInvalidToken = 4401
	CloseForbidden    = 4403
	CloseExpired      = 4410
	CloseElsewhere    = 4421 // another host has the browser
)

// Close reasons, beside those passed to Run's methods.
const (
	ReasonInvalidToken = "invalid_token"
	ReasonExpired      = "session_expired"
	ReasonForeign      = "wrong_run_or_interaction"
	ReasonSuperseded   = "superseded"
	ReasonRevoked      = "revoked"
	ReasonBye          = "bye"
	ReasonReplaced     = "connected_elsewhere"
	ReasonEnded        = "interaction_ended"
	ReasonLost         = "surface_lost"
	ReasonStopping     = "host_stopping"
	ReasonCrowded      = "too_many_viewers"
	ReasonSlow         = "too_slow"
	ReasonElsewhere    = "other_host"
)
