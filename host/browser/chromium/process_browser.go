package chromium

import (
	"context"
	"errors"
	"fmt"
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

const (
	startLimit = 30 * time.Second // B168
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
// opens its first tab. It takes at most 30 s on an idle machine, and less when ctx ends (B168); after an
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
	if err = chromedp.ListenBrowser(b.root, b.heard); err != nil { // connects; asks nothing
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
