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
	TokenLife  = 60 * time.Second // of a token that nobody redeems
	ResumeLife = 30 * time.Second // of a session whose connection dropped
	// MaxViewers are connected to one run at one time, MaxSessions exist, and
	// mintsPerMinute are made.
	MaxViewers     = 8
	MaxSessions    = 32
	mintsPerMinute = 60
)

// Views are the views of one host: its runs that have a browser, and the sessions
// of those who look. It may be used concurrently.
type Views struct {
	key [32]byte // of this process; tokens are made with it, so a restart voids all

	mu       sync.Mutex // guards what follows; taken before a Run's
	runs     map[string]*Run
	sessions map[string]*session // by view id
	tokens   map[digest]*session
	resumes  map[digest]*session
	replays  map[replay]*session
	stopping bool // Quiesce
	closed   bool

	viewers sync.WaitGroup // those that are connected
	work    sync.WaitGroup // pictures, and changes of leases
}

// New makes Views without runs.
func New() *Views {
	v := &Views{runs: map[string]*Run{}, sessions: map[string]*session{}, tokens: map[digest]*session{}, resumes: map[digest]*session{}, replays: map[replay]*session{}}
	_, _ = rand.Read(v.key[:]) // it never fails
	return v
}

// Quiesce says that the host is about to stop: a session whose question ends from
// here on is told that reason.
func (v *Views) Quiesce() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopping = true
}

// Close ends every session and waits until their connections have been left.
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

// Begin registers a run that has the browser binding; its surface may come later.
// event records one of run.stream_*; it returns at once. End forgets it.
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

// A Conn is one connection of a viewer, which carries whole messages. Read is called
// from one goroutine and Write from another; Close may be called from any goroutine and
// more than once, and ends both.
type Conn interface {
	// Read returns the next message; it belongs to the caller. Whoever makes the Conn
	// bounds a message at MaxMessage.
	Read() (binary bool, message []byte, err error)
	// Write returns within a bound of the Conn's own, and does not keep the message.
	Write(binary bool, message []byte) error
	// Close says why, with one of the codes of close.go.
	Close(code int, reason string)
}

// MaxMessage is how long a message of a viewer may be, in bytes: a piece of a file
// is the longest.
const MaxMessage = 256 << 10

// A Surface is whoever holds the browser for the run, as the view needs it. Its
// methods are called from any goroutine, one of Taken and Released at a time.
type Surface interface {
	// Taken begins the owner's control: when it returns nil no verb of the
	// guest touches the page before Released. It waits for the verb that is running,
	// until ctx ends. An error means that the lease is not given.
	Taken(ctx context.Context) error
	// Released ends it: element ids are stale and the revision rises.
	Released()
	// Sealed are the nodes that hold values which the guest may not see; they are
	// covered for those who only watch.
	Sealed() []page.Ref
	// Upload makes room for a file of the owner's where the browser can read it.
	// ErrUploads when the connector may not upload.
	Upload(ctx context.Context, name string, size int64) (Upload, error)
}

// ErrUploads: the binding has no capability for uploads.
var ErrUploads = errors.New("uploads are not permitted")

// An Upload is a file that is being received. The view erases it when the surface
// ends, or at once when it was not used.
type Upload interface {
	io.Writer
	// Path is where the browser finds it, once Done.
	Path() string
	Done() error
	Erase()
}

// Modes of a view.
const (
	ModeView    = "view"
	ModeControl = "control"
)

// A Mint asks for a view.
type Mint struct {
	Run string
	// Owner is the owner session that asks, as an opaque name: the view works for it
	// alone.
	Owner         string
	Mode          string // ModeView or ModeControl
	InteractionID string // "" for the one that is open
	AssistanceID  string
	Viewport      *page.Viewport // of the viewer, for control
	Key           string         // of idempotency; "" for none
}

// Minted is the answer.
type Minted struct {
	ViewID    string
	Token     string // "" when the view was redeemed before
	Mode      string
	ExpiresAt time.Time // of the token
	Replayed  bool
}

// A digest stands for a secret: the secret itself is kept nowhere.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// newViewID is a name that nobody guesses, though it opens nothing.
func newViewID() string { return "vw_" + random(16) }

// token is the one-time secret of a view. It is made of the view's id, so that a
// replay gets the same one and the process need not keep it.
func (v *Views) token(viewID string) string {
	mac := hmac.New(sha256.New, v.key[:])
	mac.Write([]byte("sluice live view token\x00" + viewID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// newResume is the secret with which a dropped connection comes back.
func newResume() string { return random(32) }

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// A Refusal is why a view was not minted; Code is one of the codes below or rate_limited.
// Message is for people and holds nothing of the page.
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

// Codes with which connections are closed.
const (
	CloseDone         = 1000 // bye, revoked, or what was to be done is over
	CloseGoing        = 1001 // the host stops
	CloseTooBig       = 1009
	CloseBusy         = 1013 // too many viewers
	CloseInvalidToken = 4401
	CloseForbidden    = 4403
	CloseExpired      = 4410
)

// Reasons with which they are closed, beside those that Run's methods are given.
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
)
