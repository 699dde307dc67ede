package chromium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/patience"
)

// Options say how one browser is started, and what its tabs may do.
type Options struct {
	Binary Binary // as Find gave it
	// Profile is the directory of the browser's data and Home what it takes for its
	// home; both are absolute, exist, are not shared with another browser, and the
	// caller holds the profile's lock until Close has returned. Start gives
	// both to UID with mode 0700.
	Profile string
	Home    string
	// UID and GID are who the browser is. A host that is root must give a pair that no
	// other live browser has: at the end, whatever runs under it is killed. Another
	// host leaves both zero, and the browser runs as the host does.
	UID, GID int
	// Proxy is where all of its traffic goes, http://host:port.
	Proxy string
	// Wrap changes the command before it is started, to put it into a network namespace
	// of its own; Namespace says that it does so. The process that it starts must be
	// the browser, or become it by exec. Attach is called with that process's id as
	// soon as there is one; an error ends it, and is ErrUnsafe.
	Wrap      func(*exec.Cmd) error
	Attach    func(pid int) error
	Namespace bool
	// AllowNoSandbox lets a browser live whose sandbox failed its self-test.
	AllowNoSandbox bool
	Window         page.Viewport // of new tabs; zero is 1280 by 800
	// MaxTabs is how many tabs there may be, popups with them; 0 is 4.
	MaxTabs int
	// DenyPopups closes the tabs that pages open.
	DenyPopups bool
	// Tabs are the options of each tab.
	Tabs TabOptions
	// Log is told what nobody else hears of. It holds the browser's own messages,
	// which are a stranger's. nil drops them.
	Log *slog.Logger

	scratch string // where its temporary files go
}

const (
	startLimit = 30 * time.Second
	readyLimit = 5 * time.Second
)

// A Browser is one browser process that Start started, with its tabs. It is a
// [page.Browser]; see there for what its methods promise.
type Browser struct {
	options Options
	log     *slog.Logger
	group   *group
	wire    *wire
	root    context.Context // the library's, without a tab; ends with the connection
	stop    context.CancelFunc
	cdp     *chromedp.Browser

	product string
	major   int
	agent   string
	sandbox sandbox

	lost    chan struct{}
	health  chan struct{} // of capacity 1
	wake    chan struct{} // of capacity 1; something waits in arrived, gone or unwanted
	working sync.WaitGroup

	screen *Screen

	closing sync.Once
	closed  chan struct{}
	failed  error // of Close; valid when closed is

	mu       sync.Mutex // guards all below
	tabs     []*Tab     // in the order of opening
	active   *Tab       // nil: none
	fault    error      // of the active tab
	cause    error      // of the loss
	ending   bool       // Close was called
	seen     map[target.ID]bool
	arrived  []*target.Info // pages that nobody has looked at
	gone     []*Tab         // tabs that lost their session
	creating int            // pages that are being opened here
	unwanted []string       // downloads to end
	saving   bool           // the browser saves what it is offered
	enough   bool           // more than may be saved were offered
	// downloads are those that are under way, by the browser's name for them.
	downloads map[string]*download
	opened    int           // tabs ever
	first     chan struct{} // closed when the first tab stands
}

var _ page.Browser = (*Browser)(nil)

// Start starts a browser, checks that it answers and that its sandbox holds, and
// opens its first tab. It takes at most 30 s on an idle machine, and less when ctx ends; after an
// error no process of it is left. ErrMissing, ErrUnsafe and ErrStart are the errors
// that callers tell apart.
func Start(ctx context.Context, o Options) (*Browser, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := patience.Within(ctx, startLimit)
	defer cancel()
	b, err := start(ctx, o, true)
	if errors.Is(err, errNoSandbox) && o.AllowNoSandbox {
		b, err = start(ctx, o, false)
	}
	return b, err
}

// start is one attempt.
func start(ctx context.Context, o Options, sandboxed bool) (*Browser, error) {
	if err := prepare(&o); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	b, err := launch(o, sandboxed)
	if err != nil {
		o.removeScratch()
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	if o.Attach != nil {
		if err = o.Attach(b.group.pid); err != nil {
			err = fmt.Errorf("%w: %w", ErrUnsafe, err)
		}
	}
	if err == nil {
		err = b.come(ctx)
	}
	if err == nil {
		err = b.safe(ctx)
	}
	if err == nil {
		return b, nil
	}
	said := b.group.output
	b.kill()
	<-b.group.silent
	switch {
	case errors.Is(err, ErrUnsafe):
		return nil, err
	case noUsableSandbox(said.String()):
		return nil, fmt.Errorf("%w: %w: %s", ErrUnsafe, errNoSandbox, "allow user namespaces for unprivileged users, or set browser.allow_no_sandbox")
	}
	return nil, fmt.Errorf("%w: %w; it said: %s", ErrStart, err, said.lastLine())
}

// launch starts the process and connects to it, without a word to it.
func launch(o Options, sandboxed bool) (*Browser, error) {
	cmd := exec.Command(o.Binary.Path, arguments(o, sandboxed)...) // #nosec G204 -- what Find found
	cmd.Env = environment(o.Home, o.scratch)
	cmd.Dir = o.Home
	confine(cmd, o.UID, o.GID)
	w, err := newWire(cmd)
	if err != nil {
		return nil, err
	}
	defer w.handed()
	if o.Wrap != nil {
		if err = o.Wrap(cmd); err != nil {
			_ = w.Close()
			return nil, err
		}
	}
	g, err := spawn(cmd, o.hidden())
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	b := &Browser{
		options: o, log: o.Log, group: g, wire: w,
		lost: make(chan struct{}), health: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		closed: make(chan struct{}), first: make(chan struct{}), seen: map[target.ID]bool{},
	}
	b.screen = newScreen(b)
	alloc, _ := chromedp.NewAllocatorContext(context.Background(), attached{w})
	b.root, b.stop = chromedp.NewContext(alloc, chromedp.WithErrorf(w.complain), chromedp.WithLogf(func(string, ...any) {}))
	if err = chromedp.ListenBrowser(b.root, b.onEvent); err != nil { // connects; asks nothing
		g.kill()
		_ = w.Close()
		return nil, err
	}
	b.cdp = chromedp.FromContext(b.root).Browser
	b.working.Add(2)
	go b.watch()
	go b.work()
	return b, nil
}

// come waits until the browser answers and its first tab stands and answers too.
func (b *Browser) come(ctx context.Context) error {
	v, err := cdp.Call(ctx, b.cdp, browser.GetVersion, cdp.Empty{})
	if err != nil {
		return b.why(ctx, err)
	}
	name, version, _ := strings.Cut(v.Product, "/")
	b.product, b.agent = name, v.UserAgent
	major, _, _ := strings.Cut(version, ".")
	if b.major, err = strconv.Atoi(major); err != nil {
		return fmt.Errorf("the browser says it is %.100q", v.Product)
	}
	if err = b.forbid(ctx); err != nil {
		return err
	}
	if _, err = cdp.Call(ctx, b.cdp, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true}); err != nil {
		return b.why(ctx, err)
	}
	select {
	case <-b.first: // or it failed, which Fault says
	case <-b.lost:
		return b.Fault()
	case <-ctx.Done():
		return fmt.Errorf("no tab: %w", context.Cause(ctx))
	}
	return b.answers(ctx)
}

// answers waits until the browser and its tab answer. Silence is asked again: on a busy
// machine a page that has just been made is slow.
func (b *Browser) answers(ctx context.Context) error {
	ready, cancel := patience.Within(ctx, readyLimit)
	defer cancel()
	for {
		verdict, err := Probe(ready, b)
		switch {
		case err != nil:
			return context.Cause(ready)
		case verdict.OK:
			return nil
		case verdict.Code != CodeTimeout:
			return fmt.Errorf("%s: %s", verdict.Code, verdict.Detail)
		}
	}
}

// The errors of finding and starting a browser. Callers branch on them with
// errors.Is; the message beside them is for the owner and holds no secret, but may
// hold paths of this host, which a guest does not get to see.
var (
	// ErrMissing: there is no browser to start.
	ErrMissing = errors.New("browser_missing")
	// ErrUnsafe: there is one, and it must not be used as things are.
	ErrUnsafe = errors.New("browser_unsafe")
	// ErrStart: it did not come up. Trying again may help.
	ErrStart = errors.New("surface_start_failed")
	// ErrSlow: there is one, and it did not answer in time, or the machine had nothing
	// left to run it with. Trying again helps once the machine is less busy.
	ErrSlow = errors.New("the browser is slow")
)

// outputBytes is how much of what a browser prints is kept.
const outputBytes = 16 << 10

// tail keeps the end of what is written to it. It never fails, so that who writes
// never waits. It may be used from any goroutine.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-outputBytes):]...)
	if over := len(t.kept) - outputBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

// line is the first line, for a message: at most 200 bytes.
func (t *tail) line() string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.String()), "\n")
	return first[:min(len(first), 200)]
}

// lastLine is the last line, for a message: at most 300 bytes.
func (t *tail) lastLine() string {
	text := strings.TrimSpace(t.String())
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return last[:min(len(last), 300)]
}

// drain reads until the other end is closed, or the deadline of r is over.
func (t *tail) drain(r io.ReadCloser) {
	defer r.Close()
	_, _ = io.Copy(t, r)
}

// Undecodable counts the events that the library has no name for, or could not read.
func (b *Browser) Undecodable() int64 { return b.wire.undecodable.Load() }
