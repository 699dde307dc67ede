package page

import (
	"context"
	"encoding/json"
	"time"
)

// A Tab is one page of a browser. Its methods may be called from any goroutine;
// those that act are called one at a time by whoever holds the surface. Each
// ends with its context. The error is one of error.go, wrapped or not: callers
// branch on it with errors.Is and never on its text.
type Tab interface {
	ID() string // tab_1, tab_2, … in the order of their opening
	// Facts is what the host knows without asking the page.
	Facts() Facts
	// Read looks at the page once.
	Read(ctx context.Context, q Query) (*Observation, error)
	// Ready makes the checks before an input on one node, in their order, with one hit test
	// at the point of it (fractions of its box), and begins to count the trusted
	// events that arrive there.
	Ready(ctx context.Context, node Ref, at Point) (Readiness, error)
	// ScrollTo brings a node into the viewport at once: to its middle, or to the end of
	// it that is named, since something may lie over the others. Of a node that is larger
	// than what shows it, the point (fractions of its box) comes into view.
	ScrollTo(ctx context.Context, node Ref, to Place, point Point) error

	Click(ctx context.Context, c Click) (Delivery, error)
	Hover(ctx context.Context, at Point) (Delivery, error)
	// Drag presses at the first point, moves along the others and releases.
	Drag(ctx context.Context, path []Point) (Delivery, error)
	// Fill focuses the node, selects what is in it and puts text in its place, in
	// one step and without key events.
	Fill(ctx context.Context, node Ref, text string) (Delivery, error)
	// Enter is Fill for a secret: all of it, into that node, and nowhere else.
	// ErrKind when that is not possible.
	Enter(ctx context.Context, node Ref, secret string) (Delivery, error)
	// Keys focuses the node, if there is one, and sends text as keys, one after the
	// other; clear empties it first.
	Keys(ctx context.Context, node Ref, text string, clear bool) (Delivery, error)
	// Press focuses the node, if there is one, and presses a chord such as Control+A
	// count times. ErrKey for one that is unknown or not allowed.
	Press(ctx context.Context, node Ref, chord string, count int) (Delivery, error)
	// Set changes a control through its native setter, with the focus, then
	// sends input and change.
	Set(ctx context.Context, node Ref, s Setting) (Delivery, error)
	// Leave takes the focus out of a control that was worked, so that the page takes what
	// was entered; a field that suggests something keeps it.
	Leave(ctx context.Context, node Ref) error
	// Scroll scrolls the node, or the page for "", by fractions of what it shows; it
	// reports how far it came in CSS pixels.
	Scroll(ctx context.Context, node Ref, dx, dy float64) (moved Point, d Delivery, err error)
	// Files chooses files of the host's disk in a file input.
	Files(ctx context.Context, node Ref, paths []string) (Delivery, error)
	// Choose clicks and gives the files to the chooser that the page opens because of it.
	// ErrKind: it opened none.
	Choose(ctx context.Context, c Click, paths []string) (Delivery, error)

	// Navigate loads an address; History goes back, forward or reloads. They return
	// when until (commit, dom or load) is reached. ErrScheme and ErrHost for what
	// may not be loaded, before anything is sent, or once it was taken back.
	Navigate(ctx context.Context, url, until string) (Navigation, error)
	History(ctx context.Context, direction, until string) (Navigation, error)

	// Login answers the server of an origin, https://shop.example, when it asks for a
	// login by HTTP, once for each request, until release is called. Other servers and
	// proxies get no answer.
	Login(ctx context.Context, origin, username, password string) (release func(), err error)

	// Happened is what came to pass on this tab since the mark, which Mark returns.
	Mark() Mark
	Happened(since Mark) Happened
	// Answer decides about the dialog that is open; ErrNoDialog without one.
	Answer(ctx context.Context, accept bool, text string) error
	// OnDialog says what becomes of dialogs from now on. Prompts that are accepted are
	// answered with text, or with what they propose where it is nil.
	OnDialog(policy DialogPolicy, text *string)

	// Extract runs the fixed extraction functions and returns what they say, by name.
	Extract(ctx context.Context, items []Item) (Extracted, error)
	Screenshot(ctx context.Context, s Shot) (Picture, error)
	// Console are the newest lines of the page's console, at most n, each cut to 1 KiB.
	Console(n int) []ConsoleLine
	// Requests that were begun after the mark, at most 100.
	Requests(since Mark) []RequestSeen

	// Focus brings the tab to the front, where it gets frames.
	Focus(ctx context.Context) error
	Close(ctx context.Context) error
}

// Center is the middle of a box, in fractions of it.
var Center = Point{X: 0.5, Y: 0.5}

// A Place is where in the viewport something is brought.
type Place string

// The places.
const (
	Middle Place = "center"
	Start  Place = "start"
	End    Place = "end"
)

// Facts are known to the host from the browser, not from the page.
type Facts struct {
	URL      string // committed, of the main frame
	Host     string // of it, with the port if there is one; "" for none
	Loader   string // changes with each new document
	Document string
	Dialog   *Dialog // open now
	Crashed  bool
	// Leaving: a document that is to take the place of this one was asked for, and its
	// server has not sent it yet. Until then nothing can be asked of the page.
	Leaving bool
}

// Readiness is the outcome of the checks that stand before a dispatch.
type Readiness struct {
	// Fault is "" when the node can be acted on, else the first check that failed:
	// detached, not_visible, zero_size, disabled, readonly, unstable,
	// outside_viewport or obscured.
	Fault string `json:"fault"`
	// Else is, for unstable, the first of the checks after it that failed too; "" when
	// all of them passed. Point and Owner are filled in then.
	Else string `json:"else"`
	// By is the role, or tag, of what covers it.
	By    string `json:"by"`
	Point Point  `json:"point"` // where to act
	Node  Node   `json:"node"`  // as it is now, to compare it with the node that was chosen
	Owner Ref    `json:"owner"` // the element that was hit
}

// A Click is one or more clicks at a point.
type Click struct {
	At        Point
	Button    string // left, middle or right
	Count     int
	Hold      time.Duration // between press and release, of a single click
	Modifiers []string      // Alt, Control, Meta, Shift
	Aimed     bool          // at the node that Ready looked at last, and nothing else may be hit
}

// A Setting is what Set gives a control; exactly one member is set. Indices may be
// empty.
type Setting struct {
	Number *float64
	Text   *string
	Option *string // the value of an option
	Index  *int    // of an option
	// Indices are all that are chosen of a control of several choices; nil is not that.
	Indices []int
	Check   *bool
}

// A Delivery says what became of input. It is valid beside an error too.
type Delivery struct {
	// Sent: something reached the browser; the page may have acted on it.
	Sent bool
	// Trusted events that arrived at the node since Ready; -1 is unknown.
	Trusted int
	// Turned: another node would have been hit by a click that was aimed, and the page
	// got nothing of it but the way of the pointer.
	Turned bool
}

// A Navigation is how a load went.
type Navigation struct {
	Host         string // of the committed address
	Status       int    // 0 when none is known
	SameDocument bool
	Redirects    int
}

// A Mark is a moment in the history of a tab.
type Mark int64

// Happened is what a tab went through.
type Happened struct {
	Loaders   []string // documents that were committed on addresses which are allowed
	Moved     bool     // the address changed inside of a document
	Dialogs   []Dialog
	Popups    []Popup
	Opening   int // tabs that the page asked for; those of Popups are there, or were closed
	Downloads []Download
	// Refused are addresses that were not loaded, by error: ErrScheme, ErrHost or
	// ErrCertificate.
	Refused []error
	// Dropped counts external protocols that were not opened.
	Dropped int
	// Writing counts requests of the page's scripts that may change something, begun
	// since the mark and not answered yet; an answer that goes on and on counts as one.
	Writing int
	// Asking counts requests of the page's scripts that ask for something that was not
	// asked for before, begun since the mark and not answered yet.
	Asking int
	// Sent counts what went to servers since the mark: requests but for those of a
	// page's make-up, and but for repetitions of one that asks, as by a page that polls;
	// messages of sockets count as one.
	Sent int
}

// A Dialog is a question of a page's script.
type Dialog struct {
	Type   string // alert, confirm, prompt or beforeunload
	Host   string // of the page that asks
	Text   string // for the owner alone, at most 1 KiB
	Length int    // of the message, in bytes
	Answer string // accepted, dismissed or "" while it is open
}

// A DialogPolicy is what becomes of a dialog.
type DialogPolicy int

// What becomes of dialogs. beforeunload is accepted always.
const (
	DialogDismiss DialogPolicy = iota
	DialogAccept
	DialogKeep // for the owner
)

// A Popup is a tab that a page opened.
type Popup struct {
	Tab    string `json:"tab_id,omitempty"` // "" when it was closed
	Closed string `json:"closed,omitempty"` // why
}

// A Download is a file that a page offered.
type Download struct {
	ID     string // of the browser's, never used again
	Name   string // last path element, at most 255 bytes
	MIME   string // as its server said; "" is not known
	Host   string
	Bytes  int64
	Path   string // on the host's disk, once Done
	Done   bool
	Denied bool
	Failed string // canceled, too_large or too_many; "" did not
}

// An Item is one thing to extract.
type Item struct {
	Name      string   `json:"name"`
	Take      string   `json:"take"` // text, attribute, value, table, links or jsonld
	Refs      []Ref    `json:"refs"` // in document order; empty is the whole page
	Attribute string   `json:"attribute,omitempty"`
	Columns   []string `json:"columns,omitempty"`
}

// Extracted is what a page gave: JSON that the host's own functions made.
type Extracted struct {
	Items       map[string][]json.RawMessage // one for each ref
	Truncated   bool
	Observation *Observation // of the same moment, without nodes
}

// A Shot is a picture to take.
type Shot struct {
	Format  string // jpeg or png
	Quality int    // of a jpeg, 1 to 100
	Clip    *Box
	Full    bool // the whole page
	// Cover are nodes that are painted over before the picture leaves the browser.
	Cover []Ref
}

// A Picture is encoded.
type Picture struct {
	MIME          string
	Width, Height int
	Data          []byte
}

// A ConsoleLine is something that a page's script wrote.
type ConsoleLine struct {
	Level string    `json:"level"`
	Text  string    `json:"text"`
	At    time.Time `json:"at"`
}

// A RequestSeen is a request of the page, as a hint.
type RequestSeen struct {
	Endpoint string `json:"endpoint"` // lower-case path, no query, no trailing slash
	Method   string `json:"method"`
	Status   int    `json:"status_code"`
	Verdict  string `json:"status"` // retryable, failure or success
}
