package page

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// A Browser is one browser process with its tabs. Its methods may be called from
// any goroutine. After Lost is closed they fail with ErrLost and block on nothing.
type Browser interface {
	// Product returns the browser's name and major version, such as Chromium and 156; Agent its
	// user agent.
	Product() (name string, major int)
	Agent() string
	// Tabs returns the open tabs, the active one first.
	Tabs() []Tab
	Activate(ctx context.Context, tab string) error
	// Lost is closed when the process or the connection to it is gone.
	Lost() <-chan struct{}
	// Health receives a value when something happened that may mean loss; values are coalesced.
	// Fault returns the state.
	Health() <-chan struct{}
	// Fault returns what is known to be wrong without asking the browser: nil, ErrLost, or ErrGone
	// for an active tab that crashed or was detached.
	Fault() error
	// Ping reports whether the browser answers, PingPage whether its active tab does.
	Ping(ctx context.Context) error
	PingPage(ctx context.Context) error
	// Interrupt stops the script that runs in the active tab.
	Interrupt(ctx context.Context) error
	// Cookies returns the cookies that the browser would send to one of the hosts.
	Cookies(ctx context.Context, hosts []string) ([]*http.Cookie, error)
	// Screen returns the active tab as the owner sees and operates it.
	Screen() Screen
	// Close shuts the browser down gracefully, which saves its cookies, and kills what is left when
	// ctx ends. It returns once every process is gone. It may be called again.
	Close(ctx context.Context) error
}

// A Screen is the active tab as an owner works with it. It reaches the page directly and not
// through the engine.
type Screen interface {
	// Cast sends pictures until ctx ends. Only the newest picture is sent; sent is called from one
	// goroutine and must return at once. It follows the active tab through navigations that replace
	// its target.
	Cast(ctx context.Context, c Cast, sent func(Frame)) error
	// Still takes one picture now.
	Still(ctx context.Context, quality int) (Frame, error)
	Facts() Facts
	Title(ctx context.Context) (string, error)
	// Input applies one input event of the owner.
	Input(ctx context.Context, in Input) error
	SetViewport(ctx context.Context, v Viewport) error
	Viewport() Viewport
	Answer(ctx context.Context, accept bool, text string) error
	OnDialog(DialogPolicy)
	// Control returns the node at a point for which the browser would open a pop-up of its own: a
	// select, or a date, time or colour input. It reports false if there is none.
	Control(ctx context.Context, at Point) (Node, bool, error)
	Set(ctx context.Context, node Ref, s Setting) error
	// Secrets returns the boxes of password fields and of the nodes in also.
	Secrets(ctx context.Context, also []Ref) ([]Box, error)
	// Elements returns the elements that the owner can choose from without seeing the picture.
	Elements(ctx context.Context, limit int) ([]Node, error)
	Click(ctx context.Context, node Ref) error
	FocusOn(ctx context.Context, node Ref) error
	Selection(ctx context.Context) (string, error)
	// Choosing reports whether the page waits for files; Choose gives it paths, or none to cancel.
	Choosing() bool
	Choose(ctx context.Context, paths []string) error
	Navigate(ctx context.Context, do string) error // back, forward, reload or stop
	// Changed receives a value when what Facts, Choosing or Viewport return has changed; values are
	// coalesced.
	Changed() <-chan struct{}
}

// A Cast says which pictures are wanted.
type Cast struct {
	Quality int // of the JPEG, 1 to 100
	EveryN  int // send every nth frame
	Width   int // at most, in pixels; 0 is the viewport's
	Height  int
}

// A Frame is one picture of the page, a JPEG.
type Frame struct {
	At       time.Time
	Viewport Viewport
	Scale    float64 // picture pixels per pixel of the screen, which Viewport counts
	Data     []byte
}

// Input is one input event of the owner; Kind says which members are used. At is a point of the
// screen.
type Input struct {
	// move, down, up, click, dblclick, wheel, keydown, keyup, text, compose, touchstart, touchmove, touchend, touchcancel
	Kind      string
	At        Point
	Button    int // 0 left, 1 middle, 2 right
	DX, DY    float64
	Key, Code string
	Modifiers int // bits: Alt 1, Control 2, Meta 4, Shift 8
	Text      string
	Start     int // of the selection inside of a composition
	End       int
	Commit    bool
	TouchID   int
}

// Errors of tabs and browsers. Drivers wrap them with the cause, which is for the host's log only.
var (
	// ErrGone means that the node, its document or its frame no longer exists.
	ErrGone = errors.New("the element is gone")
	// ErrHung means that the page did not answer in time.
	ErrHung = errors.New("the page does not answer")
	// ErrUndrawn means that the page has no size or has not been drawn, so there is no picture of
	// it.
	ErrUndrawn = errors.New("the page was not drawn")
	// ErrLost means that the browser or the page's process is gone. It will not answer again.
	ErrLost = errors.New("the browser is lost")
	// ErrDialog means that a dialog is open, which has to be answered first.
	ErrDialog   = errors.New("a dialog is open")
	ErrNoDialog = errors.New("no dialog is open")
	// ErrScheme and ErrHost refuse an address that may not be loaded.
	ErrScheme = errors.New("addresses of this kind are not loaded")
	ErrHost   = errors.New("the host is not in the connection's network policy")
	// ErrCertificate means that the server's certificate is not accepted.
	ErrCertificate = errors.New("the certificate is not accepted")
	// ErrNavigation means that the page could not be loaded for another reason.
	ErrNavigation = errors.New("the page could not be loaded")
	ErrKey        = errors.New("unknown or refused key")
	ErrSelector   = errors.New("not a CSS selector")
	ErrTooLarge   = errors.New("too large")
	// ErrKind means that the element is not of the kind that the step needs.
	ErrKind = errors.New("the element does not work this way")
)
