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
	// Product is what it is, for example Chromium and 156; Agent its user agent.
	Product() (name string, major int)
	Agent() string
	// Tabs are those that are open, the active one first.
	Tabs() []Tab
	Activate(ctx context.Context, tab string) error
	// Lost is closed when the process or the connection to it is gone.
	Lost() <-chan struct{}
	// Health tells a watcher that something happened that may mean loss: a
	// value is dropped when one waits. The state is read with Fault.
	Health() <-chan struct{}
	// Fault is what is known to be wrong, without asking: nil, ErrLost, or ErrGone
	// for an active tab that crashed or was detached.
	Fault() error
	// Ping asks the browser, Page its active tab, whether they answer.
	Ping(ctx context.Context) error
	PingPage(ctx context.Context) error
	// Interrupt ends the script that runs in the active tab.
	Interrupt(ctx context.Context) error
	// Cookies are those that the browser would send to one of the hosts.
	Cookies(ctx context.Context, hosts []string) ([]*http.Cookie, error)
	// Screen is what the owner sees and touches.
	Screen() Screen
	// Close ends it gracefully, which keeps its cookies, and kills what is left when
	// ctx ends. It returns when no process of it is left. It may be repeated.
	Close(ctx context.Context) error
}

// A Screen is the active tab as an owner works with it. It has its own way to the page:
// nothing here passes through the engine.
type Screen interface {
	// Cast sends pictures until ctx ends: the newest one wins, sent is called from
	// one goroutine and returns at once. It follows the active tab through
	// navigations that replace its target.
	Cast(ctx context.Context, c Cast, sent func(Frame)) error
	// Still is a picture of now.
	Still(ctx context.Context, quality int) (Frame, error)
	Facts() Facts
	Title(ctx context.Context) (string, error)
	// Input applies one thing that the owner did.
	Input(ctx context.Context, in Input) error
	SetViewport(ctx context.Context, v Viewport) error
	Viewport() Viewport
	Answer(ctx context.Context, accept bool, text string) error
	OnDialog(DialogPolicy)
	// Control is the node at a point that the browser would open a pop-up of its own
	// for: a select, or a date, time or colour input. false for none.
	Control(ctx context.Context, at Point) (Node, bool, error)
	Set(ctx context.Context, node Ref, s Setting) error
	// Secrets are the boxes of password fields and of the nodes in also.
	Secrets(ctx context.Context, also []Ref) ([]Box, error)
	// Elements are what the owner can choose from without seeing the picture.
	Elements(ctx context.Context, limit int) ([]Node, error)
	Click(ctx context.Context, node Ref) error
	FocusOn(ctx context.Context, node Ref) error
	Selection(ctx context.Context) (string, error)
	// Choosing is true while the page waits for files; Choose gives it them, or none.
	Choosing() bool
	Choose(ctx context.Context, paths []string) error
	Navigate(ctx context.Context, do string) error // back, forward, reload or stop
	// Changed is told of what Facts, Choosing and Viewport say; a value is dropped
	// when one waits.
	Changed() <-chan struct{}
}

// A Cast is how pictures are wanted.
type Cast struct {
	Quality int // of the JPEG, 1 to 100
	EveryN  int // every how many frames
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

// Input is one thing that an owner did; Kind says which members count. At is a point
// of the screen.
type Input struct {
	Kind      string // move, down, up, click, dblclick, wheel, keydown, keyup, text, compose, touchstart, touchmove, touchend, touchcancel
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

// The errors of tabs and browsers. Drivers wrap them with their cause; the cause
// is for the host's log only.
var (
	// ErrGone: the node, its document or its frame is not there any more.
	ErrGone = errors.New("the element is gone")
	// ErrHung: the page did not answer in time.
	ErrHung = errors.New("the page does not answer")
	// ErrUndrawn: the page has no size, or drew nothing so far, so there is no picture of it.
	ErrUndrawn = errors.New("the page was not drawn")
	// ErrLost: the browser, or the page's process, is gone. Nothing will answer.
	ErrLost = errors.New("the browser is lost")
	// ErrDialog: a dialog is open and nothing else can be done before it is answered.
	ErrDialog   = errors.New("a dialog is open")
	ErrNoDialog = errors.New("no dialog is open")
	// ErrScheme and ErrHost: an address that may not be loaded.
	ErrScheme = errors.New("addresses of this kind are not loaded")
	ErrHost   = errors.New("the host is not in the connection's network policy")
	// ErrCertificate: the server's certificate is not accepted.
	ErrCertificate = errors.New("the certificate is not accepted")
	// ErrNavigation: the page could not be loaded for another reason.
	ErrNavigation = errors.New("the page could not be loaded")
	ErrKey        = errors.New("unknown or refused key")
	ErrSelector   = errors.New("not a CSS selector")
	ErrTooLarge   = errors.New("too large")
	// ErrKind: the element is not of the kind that the step wants.
	ErrKind = errors.New("the element does not work this way")
)
