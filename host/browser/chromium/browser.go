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

// Options say how a browser is started and what its tabs may do.
type Options struct {
	Binary Binary // as returned by Find
	// Profile is the directory of the browser's data, Home its home directory. Both are absolute,
	// exist and are not shared with another browser; the caller holds the profile's lock until
	// Close returns. Start gives both to UID with mode 0700.
	Profile string
	Home    string
	// UID and GID are the user and group of the browser. A host that runs as root must give a pair
	// that no other live browser uses: in the end everything that runs under it is killed. Any
	// other host leaves both zero, and the browser runs as the host's user.
	UID, GID int
	// Proxy receives all of the browser's traffic, http://host:port.
	Proxy string
	// Wrap changes the command before it is started, to put it into a network namespace of its own;
	// Namespace says that it does so. The process that it starts must be the browser or become it
	// by exec. Attach is called with the process id as soon as the process exists; an error ends
	// the process and is returned as ErrUnsafe.
	Wrap      func(*exec.Cmd) error
	Attach    func(pid int) error
	Namespace bool
	// AllowNoSandbox permits a browser whose sandbox failed its self-test.
	AllowNoSandbox bool
	Window         page.Viewport // of new tabs; zero is 1280 by 800
	// MaxTabs bounds the tabs, popups included; 0 is 4.
	MaxTabs int
	// DenyPopups closes tabs that pages open.
	DenyPopups bool
	// Tabs are the options of each tab.
	Tabs TabOptions
	// Log receives what is reported nowhere else, including the browser's own messages, which are
	// untrusted. nil discards it.
	Log *slog.Logger

	scratch string // directory of its temporary files
}

const (
	startLimit = 30 * time.Second
	readyLimit = 5 * time.Second
)

// A Browser is a running browser process with its tabs. It implements [page.Browser].
type Browser struct {
	options Options
	log     *slog.Logger
	group   *group
	wire    *wire
	root    context.Context // the library's context without a tab; ends with the connection
	stop    context.CancelFunc
	cdp     *chromedp.Browser

	product string
	major   int
	agent   string
	sandbox sandbox

	lost    chan struct{}
	health  chan struct{} // of capacity 1
	wake    chan struct{} // of capacity 1; arrived, gone or unwanted has entries
	working sync.WaitGroup

	screen *Screen

	closing sync.Once
	closed  chan struct{}
	failed  error // error of Close; valid once closed is closed

	mu       sync.Mutex // guards all below
	tabs     []*Tab     // in the order of opening
	active   *Tab       // nil: none
	fault    error      // of the active tab
	cause    error      // of the loss
	ending   bool       // Close was called
	seen     map[target.ID]bool
	arrived  []*target.Info // pages not yet looked at
	gone     []*Tab         // tabs that lost their session
	creating int            // pages that the host itself is opening
	unwanted []string       // downloads to cancel
	saving   bool           // the browser saves downloads
	enough   bool           // more downloads were offered than may be saved
	// downloads holds the running downloads by the browser's id.
	downloads map[string]*download
	opened    int           // tabs opened so far
	first     chan struct{} // closed once the first tab is ready
}

var _ page.Browser = (*Browser)(nil)

// Start starts a browser, checks that it answers and that its sandbox holds, and opens its first
// tab. It takes at most 30 s on an idle machine, and less if ctx ends. After an error no process is
// left. Callers distinguish ErrMissing, ErrUnsafe, ErrStart and ErrSlow.
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

// start makes one attempt.
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
		return nil, fmt.Errorf("%w: %w: %s", ErrUnsafe, errNoSandbox,
			"allow user namespaces for unprivileged users, or set browser.allow_no_sandbox")
	}
	return nil, fmt.Errorf("%w: %w; it said: %s", ErrStart, err, said.lastLine())
}

// launch starts the process and connects to it without sending anything.
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
	b.root, b.stop = chromedp.NewContext(alloc, chromedp.WithErrorf(w.complain),
		chromedp.WithLogf(func(string, ...any) {}))
	if err = chromedp.ListenBrowser(b.root, b.onEvent); err != nil { // connects; sends nothing
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

// come waits until the browser and its first tab answer.
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
	if _, err = cdp.Call(ctx, b.cdp, target.SetDiscoverTargets,
		target.SetDiscoverTargetsParams{Discover: true}); err != nil {
		return b.why(ctx, err)
	}
	select {
	case <-b.first: // or it failed; Fault knows
	case <-b.lost:
		return b.Fault()
	case <-ctx.Done():
		return fmt.Errorf("no tab: %w", context.Cause(ctx))
	}
	return b.answers(ctx)
}

// answers waits until the browser and its tab answer. It repeats the probe, since a new page is
// slow on a busy machine.
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

// Errors of finding and starting a browser. Callers branch with errors.Is. The text beside them is
// for the owner: it holds no secret, but may hold paths of this host, which guests do not see.
var (
	// ErrMissing means that there is no browser to start.
	ErrMissing = errors.New("browser_missing")
	// ErrUnsafe means that there is a browser but it must not be used as things are.
	ErrUnsafe = errors.New("browser_unsafe")
	// ErrStart means that the browser did not start. Trying again may help.
	ErrStart = errors.New("surface_start_failed")
	// ErrSlow means that the browser did not answer in time, or that the machine had no resources
	// to run it. Trying again helps once the machine is less busy.
	ErrSlow = errors.New("the browser is slow")
)

// outputBytes bounds how much of the browser's output is kept.
const outputBytes = 16 << 10

// tail keeps the end of what is written to it. It never fails, so a writer never blocks. It is safe
// for concurrent use.
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

// line returns the first line for a message, at most 200 bytes.
func (t *tail) line() string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.String()), "\n")
	return first[:min(len(first), 200)]
}

// lastLine returns the last line for a message, at most 300 bytes.
func (t *tail) lastLine() string {
	text := strings.TrimSpace(t.String())
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return last[:min(len(last), 300)]
}

// drain reads until the other end is closed or r's deadline passes.
func (t *tail) drain(r io.ReadCloser) {
	defer r.Close()
	_, _ = io.Copy(t, r)
}

// Undecodable returns the number of events that the library does not know or could not decode.
func (b *Browser) Undecodable() int64 { return b.wire.undecodable.Load() }
