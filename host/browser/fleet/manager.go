package fleet

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/patience"
)

// Bounds of a surface's life, in wall time.
const (
	DefaultMax   = 4
	queueTime    = 120 * time.Second
	startTime    = 30 * time.Second
	readyTime    = 5 * time.Second
	quickEnd     = 5 * time.Second // a browser that ends sooner is started once more
	MaxLinger    = 300 * time.Second
	closeTime    = 10 * time.Second // until the process is given up
	resetTime    = 3 * time.Second
	firstFreeUID = 1000
)

// Options of a Manager. Dir, Start and Open are required.
type Options struct {
	Dir   string // of the profiles; made if it is missing
	Max   int    // surfaces at once; 0 is DefaultMax
	Start Starter
	Open  GateOpener
	Check Checker // nil: check
	// Patience scales a wait to the machine's load; nil is patience.For.
	Patience func(time.Duration) time.Duration
	// Clone copies files of profiles; nil is reflink.
	Clone Cloner
	// Linger is how long a connection's browser is kept after its run, at most MaxLinger; 0
	// disables it.
	Linger time.Duration
	// FirstUID and LastUID are the range of uids for browsers, or 0, 0 if the host is not root.
	FirstUID, LastUID int
	// Log receives what no guest is told; nil discards it.
	Log *slog.Logger
}

// A Checker asks a browser and its page whether they answer, repeating a question that gets no
// answer. It takes at most 5 s.
type Checker func(ctx context.Context, b page.Browser) Probe

func check(ctx context.Context, b page.Browser) Probe {
	v, err := chromium.Probe(ctx, b)
	if err != nil {
		return Probe{Code: CodeTimeout, Detail: "no answer in time"}
	}
	return Probe{OK: v.OK, Code: v.Code, Detail: v.Detail}
}

// A Manager keeps the browsers of one host. It is safe for concurrent use.
type Manager struct {
	o       Options
	folders *folders
	slots   *slots
	uids    *uids
	life    context.Context // of processes that no run holds
	end     context.CancelFunc
	work    sync.WaitGroup // background work

	mu      sync.Mutex // guards the fields below
	closed  bool
	idle    []*process // lingering, oldest first
	blank   *process   // a blank browser in reserve; nil: none
	filling bool       // the reserve is being started
	live    map[*Surface]struct{}
}

// New returns a manager without browsers. It removes temporary directories that an earlier host
// left; the caller ends that host's processes first.
func New(o Options) (*Manager, error) {
	if o.FirstUID != 0 && (o.FirstUID < firstFreeUID || o.LastUID < o.FirstUID) {
		return nil, errors.New("browser.uid_range: it begins at 1000 or above and does not end before it begins")
	}
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	if o.Check == nil {
		o.Check = check
	}
	if o.Patience == nil {
		o.Patience = patience.For
	}
	if o.Clone == nil {
		o.Clone = reflink
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Linger = min(o.Linger, MaxLinger)
	f, err := openFolders(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := f.sweep(); err != nil {
		return nil, errors.Join(err, f.root.Close())
	}
	m := &Manager{o: o, folders: f, slots: &slots{free: o.Max}, live: map[*Surface]struct{}{},
		uids: &uids{first: o.FirstUID, last: o.LastUID, pool: map[int]bool{}, claimed: claims{}}}
	m.life, m.end = context.WithCancel(context.Background())
	return m, nil
}

// Facts are shown on the owner's health page.
type Facts struct {
	Max, Live, Idle int
	UIDs            string // own or shared
}

// Facts returns how much of the manager is in use.
func (m *Manager) Facts() Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := Facts{Max: m.o.Max, Live: len(m.live), Idle: len(m.idle), UIDs: "own"}
	if m.o.FirstUID == 0 {
		f.UIDs = "shared"
	}
	return f
}

// Forget ends the idle browsers of a connection and removes its profiles. It refuses with
// profile_in_use while a run has one.
func (m *Manager) Forget(ctx context.Context, connection string) error {
	m.mu.Lock()
	for s := range m.live {
		if s.request.Connection == connection {
			m.mu.Unlock()
			return errInUse
		}
	}
	mine := m.takeIdle(func(p *process) bool { return p.connection == connection })
	m.mu.Unlock()
	for _, p := range mine {
		p.end(ctx)
	}
	return m.folders.erase(connection)
}

// Close ends every browser and refuses new surfaces. Surfaces that runs have not released are
// released.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	left := slices.Collect(maps.Keys(m.live))
	idle := m.takeIdle(func(*process) bool { return true })
	if m.blank != nil {
		idle = append(idle, m.blank)
		m.blank = nil
	}
	m.mu.Unlock()
	m.end()
	for _, p := range idle {
		m.work.Go(func() { p.end(ctx) })
	}
	for _, s := range left {
		m.work.Go(func() { s.Release(ctx) })
	}
	m.work.Wait()
	return errors.Join(m.uids.close(), m.folders.root.Close())
}

// takeIdle removes matching processes from the idle list and returns them. The caller holds mu.
func (m *Manager) takeIdle(which func(*process) bool) (taken []*process) {
	var rest []*process
	for _, p := range m.idle {
		if which(p) {
			p.timer.Stop()
			taken = append(taken, p)
		} else {
			rest = append(rest, p)
		}
	}
	m.idle = rest
	return taken
}

// refusal returns what a guest is told of a failure; the cause is logged.
func (m *Manager) refusal(err error) *engine.Refusal {
	var r *engine.Refusal
	if errors.As(err, &r) {
		return r
	}
	m.o.Log.Error("a browser did not start", "error", err, "busy", patience.Busy())
	if errors.Is(err, context.DeadlineExceeded) && patience.Busy() != "" {
		return &engine.Refusal{Code: "surface_start_failed", Verb: engine.Open,
			Message: "the machine is busy: the browser did not start in time; try again later"}
	}
	return &engine.Refusal{Code: "surface_start_failed", Verb: engine.Open,
		Message: "the browser did not start; try again, and look at the host's log if it goes on"}
}

var errClosing = &engine.Refusal{Code: "browser_capacity", Verb: engine.Open, Message: "the host is stopping"}

// Acquire gives a run a browser. It takes at most the queue time of 120 s and two starts of 30 s;
// on failure everything is undone. The error is an *engine.Refusal or ctx's. The caller must call
// Release on the surface.
func (m *Manager) Acquire(ctx context.Context, r Request) (*Surface, error) {
	if refused := CheckName(r.Profile); refused != nil {
		return nil, refused
	}
	s := &Surface{m: m, id: newID(), request: r, gone: make(chan struct{}), over: make(chan struct{}),
		done: make(chan struct{})}
	if r.Persistent {
		if err := m.folders.sameFolded(r.Connection, r.Profile); err != nil {
			return nil, m.refusal(err)
		}
	}
	s.event(Event{Type: EventRequested})
	if err := s.acquire(ctx); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else {
			err = m.refusal(err)
		}
		s.event(Event{Type: EventFailed, Code: codeOf(err)})
		return nil, err
	}
	return s, nil
}

func codeOf(err error) string {
	var r *engine.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return "cancelled"
}

func (s *Surface) acquire(ctx context.Context) error {
	m := s.m
	queue, stop := context.WithTimeout(ctx, queueTime)
	defer stop()
	queued := false
	waiting := func() {
		if !queued {
			s.event(Event{Type: EventQueued})
		}
		queued = true
	}
	if err := m.slots.take(queue, s.request.Scheduled, waiting); err != nil {
		return err
	}
	if err := s.obtain(ctx, queue, waiting); err != nil {
		m.slots.give()
		return err
	}
	m.mu.Lock()
	m.live[s] = struct{}{}
	closed := m.closed
	m.mu.Unlock()
	m.makeRoom(ctx)
	s.watch()
	if closed {
		s.Release(ctx)
		return errClosing
	}
	return nil
}

// obtain takes a warm process or starts one.
func (s *Surface) obtain(ctx, queue context.Context, waiting func()) error {
	if p := s.m.warm(ctx, s.request); p != nil {
		s.process = p
		return nil
	}
	p, err := s.m.claim(queue, s.request, waiting)
	if err != nil {
		return err
	}
	s.event(Event{Type: EventStarting})
	for again := false; ; again = true {
		err = p.launch(ctx, s.request.Bind)
		if err == nil {
			p.isOpen()
			s.process = p
			return nil
		}
		itself := p.endedItself(err)
		p.stopBrowser(ctx)
		if !itself || again && !p.restore() {
			p.end(ctx)
			return err
		}
	}
}

// endedItself reports whether a browser that was just started ended by itself.
func (p *process) endedItself(err error) bool {
	if time.Since(p.started) > quickEnd {
		return false
	}
	return errors.Is(err, page.ErrLost) || p.browser != nil && isClosed(p.browser.Lost())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// newID returns a random surface id.
func newID() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return "sf_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}
