package chromium

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// spawned bounds what the tab does in the background.
const spawned = 10 * time.Second

// A pendingCall can be ended from elsewhere: by an unanswered dialog or the end of the page.
type pendingCall struct {
	end     context.CancelCauseFunc
	dialogs bool // a dialog for the owner ends it
}

// errWorld means that the document of a call no longer exists.
var errWorld = errors.New("the document is gone")

// call runs do, which waits for the browser. It ends with ctx, when the page is lost, and when a
// dialog opens that is kept for the owner; if one is open already it fails at once. Its errors are
// those of package page.
func (t *Tab) call(ctx context.Context, do func(context.Context) error) error {
	return t.race(ctx, true, do)
}

func (t *Tab) race(ctx context.Context, dialogs bool, do func(context.Context) error) error {
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := &pendingCall{end: end, dialogs: dialogs}
	t.mu.Lock()
	switch {
	case t.gone != nil:
		defer t.mu.Unlock()
		return t.gone
	case dialogs && t.dialogs.open != nil && t.dialogs.kept:
		defer t.mu.Unlock()
		return page.ErrDialog
	}
	t.calls[r] = struct{}{}
	t.mu.Unlock()
	err := do(inner)
	t.mu.Lock()
	delete(t.calls, r)
	t.mu.Unlock()
	return t.explain(ctx, inner, err)
}

// steady runs do exclusively of everything else that depends on the page's scale. To take a picture
// the browser changes the scale and restores the original size afterwards: meanwhile input would
// miss, and a new size would be lost.
func (t *Tab) steady(ctx context.Context, do func(context.Context) error) error {
	select {
	case t.pixels <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.pixels }()
	return do(ctx)
}

// endCalls ends all calls, or for page.ErrDialog those that a dialog blocks. mu is held.
func (t *Tab) endCalls(cause error) {
	for r := range t.calls {
		if r.dialogs || !errors.Is(cause, page.ErrDialog) {
			r.end(cause)
		}
	}
}

// explain translates the error of a call to those of package page.
func (t *Tab) explain(ctx, inner context.Context, err error) error {
	if err == nil {
		return nil
	}
	if known(err) {
		return err
	}
	if cause := context.Cause(inner); ctx.Err() == nil && known(cause) {
		return cause
	}
	if t.isLost() {
		return fmt.Errorf("%w: %w", page.ErrLost, err)
	}
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w: %w", page.ErrHung, ctx.Err())
		}
		return ctx.Err()
	}
	if errors.Is(err, errWorld) || worldGone(err) {
		return fmt.Errorf("%w: %w", page.ErrGone, err)
	}
	if errors.Is(err, chromedp.ErrTargetDetached) {
		return fmt.Errorf("%w: %w", page.ErrLost, err)
	}
	return err
}

// isLost reports whether the page or its browser is known to be gone.
func (t *Tab) isLost() bool {
	t.mu.Lock()
	gone := t.gone
	t.mu.Unlock()
	if gone != nil || t.ctx.Err() != nil {
		return true
	}
	select {
	case <-chromedp.FromContext(t.ctx).Browser.LostConnection:
		return true
	default:
		return false
	}
}

var errorsOfPages = []error{
	page.ErrGone, page.ErrHung, page.ErrLost, page.ErrDialog, page.ErrNoDialog, page.ErrScheme, page.ErrHost,
	page.ErrCertificate, page.ErrNavigation, page.ErrUndrawn, page.ErrKey, page.ErrSelector,
	page.ErrTooLarge, page.ErrKind,
}

func known(err error) bool {
	for _, e := range errorsOfPages {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// worldGone reports whether an error says that a document went away during a call.
func worldGone(err error) bool {
	e, ok := errors.AsType[*cdproto.Error](err)
	if !ok {
		return false
	}
	for _, s := range []string{"Cannot find context", "context was destroyed", "navigated or closed",
		"Cannot find default execution context", "uniqueContextId not found", "Could not find node", "No node with given id",
		"Not attached to an active page", "Frame with the given"} {
		if strings.Contains(e.Message, s) {
			return true
		}
	}
	return false
}

// command sends a command without a result.
func command[P any](ctx context.Context, s cdp.Session, c cdp.Command[P, cdp.Empty], params P) error {
	_, err := cdp.Call(ctx, s, c, params)
	return err
}

// spawn runs do in the background. Event handlers must use it for commands, since a command in a
// handler would wait for itself.
func (t *Tab) spawn(do func(context.Context)) {
	t.work.run(func() {
		ctx, cancel := context.WithTimeout(t.ctx, spawned)
		defer cancel()
		do(ctx)
	})
}

// until waits for a condition that the tab's events bring about. is is called with mu held.
func (t *Tab) until(ctx context.Context, is func() bool) error {
	for {
		t.mu.Lock()
		ok, changed, gone := is(), t.changed, t.gone
		t.mu.Unlock()
		switch {
		case ok:
			return nil
		case gone != nil:
			return gone
		}
		select {
		case <-changed:
		case <-t.ctx.Done():
			return page.ErrLost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// background is a group of goroutines of a tab. Closing the tab waits for them; later ones are not
// started.
type background struct {
	mu    sync.Mutex // guards over
	over  bool
	under sync.WaitGroup
}

func (e *background) run(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.under.Go(do)
	}
}

func (e *background) wait() {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	e.under.Wait()
}
