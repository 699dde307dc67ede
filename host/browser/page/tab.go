package page

import (
	"context"
	"encoding/json"
	"time"
)

// A Tab is one page of a browser. Its methods may be called from any goroutine; those that act are
// called one at a time by the holder of the surface. Each ends with its context. The errors are
// those of this package, possibly wrapped: callers branch with errors.Is and never on the text.
type Tab interface {
	ID() string // tab_1, tab_2, … in the order of opening
	// Facts returns what the host knows without asking the page.
	Facts() Facts
	// Read takes one look at the page.
	Read(ctx context.Context, q Query) (*Observation, error)
	// Ready runs the checks that precede an input on a node, in order, with one hit test at a point
	// given in fractions of its box, and starts to count the trusted events that arrive there.
	Ready(ctx context.Context, node Ref, at Point) (Readiness, error)
	// ScrollTo scrolls a node into the viewport at once: to the middle, or to the given end where
	// something covers the other places. For a node larger than its scroll container, point (in
	// fractions of its box) is brought into view.
	ScrollTo(ctx context.Context, node Ref, to Place, point Point) error

	Click(ctx context.Context, c Click) (Delivery, error)
	Hover(ctx context.Context, at Point) (Delivery, error)
	// Drag presses at the first point, moves along the others and releases at the last.
	Drag(ctx context.Context, path []Point) (Delivery, error)
	// Fill focuses the node and replaces its content with text, in one step and without key events.
	Fill(ctx context.Context, node Ref, text string) (Delivery, error)
	// Enter is Fill for a secret: all of it goes into that node and nowhere else. It returns
	// ErrKind when that is not possible.
	Enter(ctx context.Context, node Ref, secret string) (Delivery, error)
	// Keys focuses the node, if one is given, and types text key by key; clear empties it first.
	Keys(ctx context.Context, node Ref, text string, clear bool) (Delivery, error)
	// Press focuses the node, if one is given, and presses a chord such as Control+A count times.
	// It returns ErrKey for a chord that is unknown or not allowed.
	Press(ctx context.Context, node Ref, chord string, count int) (Delivery, error)
	// Set changes a focused control through its native setter, then dispatches input and change.
	Set(ctx context.Context, node Ref, s Setting) (Delivery, error)
	// Leave takes the focus out of a control, so that the page accepts what was entered. A field
	// that shows suggestions keeps it.
	Leave(ctx context.Context, node Ref) error
	// Scroll scrolls the node, or the page for "", by fractions of the visible area and returns the
	// distance in CSS pixels.
	Scroll(ctx context.Context, node Ref, dx, dy float64) (moved Point, d Delivery, err error)
	// Files selects files on the host's disk in a file input.
	Files(ctx context.Context, node Ref, paths []string) (Delivery, error)
	// Choose clicks and gives the files to the file chooser that the page then opens. It returns
	// ErrKind if none opens.
	Choose(ctx context.Context, c Click, paths []string) (Delivery, error)

	// Navigate loads an address; History goes back, forward or reloads. They return once until
	// (commit, dom or load) is reached. An address that may not be loaded gives ErrScheme or
	// ErrHost, either before anything is sent or after the navigation was undone.
	Navigate(ctx context.Context, url, until string) (Navigation, error)
	History(ctx context.Context, direction, until string) (Navigation, error)

	// Login answers an origin, such as https://shop.example, that asks for an HTTP login, once per
	// request, until release is called. Other servers and proxies get no answer.
	Login(ctx context.Context, origin, username, password string) (release func(), err error)

	// Happened returns what happened on this tab since a mark, which Mark returns.
	Mark() Mark
	Happened(since Mark) Happened
	// Answer accepts or dismisses the open dialog. It returns ErrNoDialog if there is none.
	Answer(ctx context.Context, accept bool, text string) error
	// OnDialog sets what happens to dialogs from now on. Accepted prompts are answered with text,
	// or with their default where it is nil.
	OnDialog(policy DialogPolicy, text *string)

	// Extract runs the fixed extraction functions and returns their results by name.
	Extract(ctx context.Context, items []Item) (Extracted, error)
	Screenshot(ctx context.Context, s Shot) (Picture, error)
	// Console returns the newest lines of the page's console, at most n, each cut to 1 KiB.
	Console(n int) []ConsoleLine
	// Requests returns the newest requests that began after the mark, at most 100.
	Requests(since Mark) []RequestSeen

	// Focus brings the tab to the front, where it gets frames.
	Focus(ctx context.Context) error
	Close(ctx context.Context) error
}

// Center is the middle of a box, in fractions of it.
var Center = Point{X: 0.5, Y: 0.5}

// A Place is a position in the viewport that a node is scrolled to.
type Place string

// The places.
const (
	Middle Place = "center"
	Start  Place = "start"
	End    Place = "end"
)

// Facts are what the host knows of a tab from the browser, not from the page.
type Facts struct {
	URL      string // committed, of the main frame
	Host     string // of it, with the port if there is one; "" for none
	Loader   string // changes with each new document
	Document string
	Dialog   *Dialog // open now
	Crashed  bool
	// Leaving means that another document was requested and its server has not sent it yet. Until
	// then the page answers nothing.
	Leaving bool
}

// Readiness is the result of the checks that precede a dispatch.
type Readiness struct {
	// Fault is "" when the node can be acted on, otherwise the first check that failed: detached,
	// not_visible, zero_size, disabled, readonly, unstable, outside_viewport or obscured.
	Fault string `json:"fault"`
	// Else is, for unstable, the first later check that failed too, or "" when all passed. Point
	// and Owner are then filled in.
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
	Hold      time.Duration // between press and release of a single click
	Modifiers []string      // Alt, Control, Meta, Shift
	Aimed     bool          // only the node that Ready checked last may be hit
}

// A Setting is the value that Set gives a control; exactly one member is set. Indices may be empty.
type Setting struct {
	Number *float64
	Text   *string
	Option *string // the value of an option
	Index  *int    // of an option
	// Indices selects several options and no others; nil means that another member is set.
	Indices []int
	Check   *bool
}

// A Delivery says how far an input got. It is valid also beside an error.
type Delivery struct {
	// Sent means that something reached the browser, so the page may have acted on it.
	Sent bool
	// Trusted counts the trusted events that arrived at the node since Ready; -1 is unknown.
	Trusted int
	// Turned means that an aimed click would have hit another node; the page got only the movement
	// of the pointer.
	Turned bool
}

// A Navigation describes a finished load.
type Navigation struct {
	Host         string // of the committed address
	Status       int    // 0 when none is known
	SameDocument bool
	Redirects    int
}

// A Mark is a moment in the history of a tab.
type Mark int64

// Happened is what happened on a tab since a mark.
type Happened struct {
	Loaders   []string // allowed documents that were committed
	Moved     bool     // the address changed within a document
	Dialogs   []Dialog
	Popups    []Popup
	Opening   int // tabs that the page asked for; those in Popups were opened or closed already
	Downloads []Download
	// Refused holds an error for each address that was not loaded: ErrScheme, ErrHost or
	// ErrCertificate.
	Refused []error
	// Dropped counts attempts to open external protocols.
	Dropped int
	// Writing counts unanswered requests of scripts that may change something, begun since the
	// mark; an endless answer counts as one.
	Writing int
	// Asking counts unanswered requests of scripts for something not requested before, begun since
	// the mark.
	Asking int
	// Sent counts requests to servers since the mark, without style sheets, pictures and the like
	// and without repeats of a request that polls. Socket messages count as one.
	Sent int
}

// A Dialog is a dialog that a page's script opened.
type Dialog struct {
	Type string // alert, confirm, prompt or beforeunload
	// Sent counts requests to servers since the mark, without style sheets, scripts, fonts and media and without repeats
	// of a request that polls. Socket messages count as one.
	Host   string
	Text   string // for the owner alone, at most 1 KiB
	Length int    // of the message, in bytes
	Answer string // accepted, dismissed, or "" while open
}

// A DialogPolicy says what happens to a dialog.
type DialogPolicy int

// The policies. beforeunload is always accepted.
const (
	DialogDismiss DialogPolicy = iota
	DialogAccept
	DialogKeep // leave it to the owner
)

// A Popup is a tab that a page opened.
type Popup struct {
	Tab    string `json:"tab_id,omitempty"` // "" if it was closed
	Closed string `json:"closed,omitempty"` // why
}

// A Download is a file that a page offered.
type Download struct {
	ID     string // assigned by the browser, never reused
	Name   string // last path element, at most 255 bytes
	MIME   string // as the server declared it; "" if unknown
	Host   string
	Bytes  int64
	Path   string // on the host's disk, once Done
	Done   bool
	Denied bool
	Failed string // canceled, too_large or too_many; "" if it did not fail
}

// An Item is one thing to extract.
type Item struct {
	Name      string   `json:"name"`
	Take      string   `json:"take"` // text, attribute, value, table, links or jsonld
	Refs      []Ref    `json:"refs"` // in document order; empty means the whole page
	Attribute string   `json:"attribute,omitempty"`
	Columns   []string `json:"columns,omitempty"`
}

// Extracted is what was read from a page: JSON made by the host's own functions.
type Extracted struct {
	Items       map[string][]json.RawMessage // one for each ref
	Truncated   bool
	Observation *Observation // of the same moment, without nodes
}

// A Shot says how a screenshot is taken.
type Shot struct {
	Format  string // jpeg or png
	Quality int    // of a jpeg, 1 to 100
	Clip    *Box
	Full    bool // the whole page
	// Cover lists nodes that are painted over before the picture leaves the browser.
	Cover []Ref
}

// A Picture is an encoded image.
type Picture struct {
	MIME          string
	Width, Height int
	Data          []byte
}

// A ConsoleLine is a line that a script wrote to the console.
type ConsoleLine struct {
	Level string    `json:"level"`
	Text  string    `json:"text"`
	At    time.Time `json:"at"`
}

// A RequestSeen is a request that the page made; it is a hint and proves nothing.
type RequestSeen struct {
	Endpoint string `json:"endpoint"` // lower-case path, no query, no trailing slash
	Method   string `json:"method"`
	Status   int    `json:"status_code"`
	Verdict  string `json:"status"` // retryable, failure or success
}
