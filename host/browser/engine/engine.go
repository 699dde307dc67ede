package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Tabs is what the engine needs of a browser; every page.Browser is one.
type Tabs interface {
	Tabs() []page.Tab // the active one first
	Activate(ctx context.Context, tab string) error
	Lost() <-chan struct{}
}

var _ Tabs = page.Browser(nil)

// Secrets are the sealed values of a run. Its methods are called from the goroutine
// of Do.
type Secrets interface {
	// Value returns what a handle stands for, if it may be typed into the field: both
	// origins are approved destinations and the field fits. Else it is one of
	// the sealed_* refusals.
	Value(handle, pageOrigin, frameOrigin string, field page.Node) (string, *Refusal)
	// Login returns what handles stand for, if all of them may be sent to the origin as a login
	// by HTTP; else as Value.
	Login(origin string, handles ...string) ([]string, *Refusal)
	// Hide puts handles in the place of sealed values in a text.
	Hide(text string) string
	// Submitted is told of the first side effect on a page that a sealed value was
	// filled into.
	Submitted()
}

// Files are what uploads come from.
type Files interface {
	// Stage makes private copies for the browser; release removes them, once their
	// document or the surface has ended. It is called once.
	Stage(ctx context.Context, files []File) (staged []StagedFile, release func(), refused *Refusal)
}

// A StagedFile is a file that can be chosen in a page.
type StagedFile struct {
	Path  string `json:"-"`
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// A Record is what the archive and the log are told of one verb.
type Record struct {
	Verb    Verb
	Tab     string
	URLHost string
	Trace   Trace
	Result  *Result // nil for verbs that are no actions
	Amended bool    // the action was told before, and ended in another way since
}

// Options are what an engine is made of. Browser and Identity are needed; a nil
// function or interface stands for an absent capability.
type Options struct {
	Browser  Tabs
	Identity *Identity
	Secrets  Secrets
	Files    Files
	Declared func(name string) *Declared
	// Controlled reports that the owner holds the control lease.
	Controlled func() bool
	// Dialogs is what becomes of dialogs that open outside of actions; nil
	// dismisses them, and keeps them for an owner who is in control.
	Dialogs func() page.DialogPolicy
	// AllowURL judges an address before it is asked for: nil, page.ErrScheme or
	// page.ErrHost. The driver judges every hop again.
	AllowURL func(url string) error
	// Keep makes a picture, and a finished download, something that a guest may hold.
	Keep func(page.Picture) (any, *Refusal)
	// Download reports with false that it cannot be held now: it is handed over later.
	Download func(page.Download) (told any, held bool)
	// Signal is told of every finished action, Trace of every verb, both after its
	// outcome is settled. Count raises a counter of the host. They return at once.
	Signal func(Signal)
	Trace  func(Record)
	Count  func(name string, labels ...string)
	// Broke is told of faults of the host, for its log.
	Broke func(error)
}

const (
	// readTimeout is how long one look at a page may take.
	readTimeout = time.Second
	// threshold is the confidence below which nothing is acted on.
	threshold = 0.5
)

// An Engine works the pages of one surface. Do takes one verb at a time; its other
// methods may be called from any goroutine.
type Engine struct {
	opt   Options
	clock *clock
	lost  <-chan struct{}

	busy    atomic.Bool // a verb runs
	touched atomic.Bool // the owner had the page since the last verb

	work    sync.Mutex                     // guards all below; held by the verb that runs
	filled  map[string]map[page.Ref]sealed // by tab and node
	known   map[string]bool                // tabs of the last reply
	marks   map[string]page.Mark           // of the last reply, by tab
	history map[string]*History            // by tab
	calm    map[string]*calmness           // by tab
	worked  map[string]page.Ref            // the control that was worked last, by tab
	claims  []*claim                       // what was verified, the oldest first
	open    *deferred                      // waits for its expect
	pasts   []*past                        // the latest actions that were dispatched
	late    map[string]lateDownload        // by the download's id
	offers  map[string]bool                // downloads whose end was told, by id
	uploads []uploaded                     // what open pages may still read
}

// New makes the engine of one surface.
func New(o Options) *Engine {
	return &Engine{opt: o, clock: newClock(), lost: o.Browser.Lost(), filled: map[string]map[page.Ref]sealed{},
		worked: map[string]page.Ref{}, known: map[string]bool{}, history: map[string]*History{}, calm: map[string]*calmness{},
		late: map[string]lateDownload{}, offers: map[string]bool{}}
}

// tabs returns those that are open, and those that were closed since the last reply, with
// the reason where the host had one: popups beyond what is allowed, pages that crashed.
func (e *Engine) tabs(of page.Tab) []TabInfo {
	out := []TabInfo{}
	open := map[string]bool{}
	marks := map[string]page.Mark{}
	why := map[string]string{}
	var popups []TabInfo
	hear := func(t page.Tab) {
		marks[t.ID()] = t.Mark() // first: what happens meanwhile is the next reply's too
		for _, p := range t.Happened(e.marks[t.ID()]).Popups {
			switch {
			case p.Closed == "":
			case p.Tab == "":
				popups = append(popups, TabInfo{Closed: p.Closed})
			default:
				why[p.Tab] = p.Closed
			}
		}
	}
	for i, t := range e.opt.Browser.Tabs() {
		open[t.ID()] = true
		out = append(out, TabInfo{TabID: t.ID(), URLHost: t.Facts().Host, Active: i == 0})
		hear(t)
	}
	if !open[of.ID()] {
		hear(of)
	}
	var gone []string
	for id := range e.known {
		if !open[id] {
			gone = append(gone, id)
		}
	}
	for id := range why { // opened and closed since the last reply
		if !open[id] && !e.known[id] {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	for _, id := range gone {
		out = append(out, TabInfo{TabID: id, Closed: cmp.Or(why[id], "closed")})
		delete(e.filled, id)
	}
	e.known, e.marks = open, marks
	return append(out, popups...)
}
