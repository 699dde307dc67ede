package chromium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"github.com/sluicehost/sluice/host/browser/page"
)

// errAnswer means that the answer does not belong to the question.
var errAnswer = errors.New("the browser answered something else")

// Ping reports whether the browser answers. page.ErrHung means no answer before ctx ended,
// page.ErrLost no browser; any other error is the browser's answer.
func (b *Browser) Ping(ctx context.Context) error {
	v, err := cdp.Call(ctx, b.cdp, browser.GetVersion, cdp.Empty{})
	if err == nil && v.Product == "" {
		err = errAnswer
	}
	return b.why(ctx, err)
}

// PingPage reports whether the active tab answers. page.ErrDialog means that an open dialog
// prevents it, page.ErrGone that the tab crashed, was detached, or that there is none.
func (b *Browser) PingPage(ctx context.Context) error {
	t, err := b.current()
	if err != nil {
		return err
	}
	if t.dialogOpen() {
		return page.ErrDialog
	}
	got, err := cdp.Call(ctx, t.session, runtime.Evaluate,
		runtime.EvaluateParams{Expression: "1", ReturnByValue: new(true)})
	switch {
	case err != nil && t.dialogOpen():
		return page.ErrDialog
	case err != nil && t.fallen.Load():
		return page.ErrGone
	case err == nil && string(got.Result.Value) != "1":
		err = errAnswer
	}
	return b.why(ctx, err)
}

// Interrupt stops the script that runs in the active tab.
func (b *Browser) Interrupt(ctx context.Context) error {
	t, err := b.current()
	if err != nil {
		return err
	}
	_, err = cdp.Call(ctx, t.session, runtime.TerminateExecution, cdp.Empty{})
	return b.why(ctx, err)
}

// current returns the active tab if it is usable.
func (b *Browser) current() (*Tab, error) {
	if err := b.Fault(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.active == nil {
		return nil, page.ErrGone
	}
	return b.active, nil
}

// Bounds of a probe.
const (
	probeLimit     = 5 * time.Second
	pingLimit      = time.Second
	pingPageLimit  = 1500 * time.Millisecond
	interruptLimit = 250 * time.Millisecond
)

// Codes of a surface that is lost or not usable.
const (
	CodeNotReady     = "browser_surface_not_ready"
	CodeUnreachable  = "browser_surface_cdp_unreachable"
	CodeDisconnected = "browser_surface_cdp_disconnected"
	CodePageStale    = "browser_surface_page_stale"
	CodeTimeout      = "browser_surface_probe_timeout"
)

// A Verdict is the result of a probe. Code and Detail are empty when it is OK. Detail has at most
// 200 bytes and no addresses, paths or pids.
type Verdict struct {
	OK     bool
	Code   string
	Detail string
	// Rescued means that the page answered again after its script was stopped.
	Rescued bool
	// Dialog means that the page could not be asked because a dialog is open.
	Dialog bool
}

// A Probed can be probed; a [page.Browser] is one.
type Probed interface {
	Fault() error
	Ping(ctx context.Context) error
	PingPage(ctx context.Context) error
	Interrupt(ctx context.Context) error
}

// Probe asks a browser and its active page whether they answer. A known fault and an error answer
// count at once; a missing answer counts only if it is missing twice in a row and once more after
// the page's script was stopped. It takes at most 5 s. If ctx ends first its error is returned and
// nothing is known.
func Probe(ctx context.Context, b Probed) (v Verdict, err error) {
	defer func() {
		if p := recover(); p != nil { // a probe that panics proves nothing
			v, err = Verdict{Code: CodeUnreachable, Detail: "the probe broke"}, nil
		}
	}()
	within, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	fault, dialog := ask(within, b)
	if errors.Is(fault, page.ErrHung) {
		fault, dialog = ask(within, b)
	}
	rescued := false
	if errors.Is(fault, page.ErrHung) {
		_ = limited(within, interruptLimit, b.Interrupt)
		fault, dialog = ask(within, b)
		rescued = fault == nil
	}
	if ctx.Err() != nil {
		return Verdict{}, ctx.Err()
	}
	if fault != nil {
		return judge(fault), nil
	}
	return Verdict{OK: true, Rescued: rescued, Dialog: dialog}, nil
}

// ask makes one probe of browser and page. While a dialog is open only the browser counts.
func ask(ctx context.Context, b Probed) (fault error, dialog bool) {
	if fault = b.Fault(); fault != nil {
		return fault, false
	}
	if fault = limited(ctx, pingLimit, b.Ping); fault != nil {
		return fault, false
	}
	fault = limited(ctx, pingPageLimit, b.PingPage)
	if errors.Is(fault, page.ErrDialog) {
		return nil, true
	}
	return fault, false
}

// limited asks within a limit. A missing answer is page.ErrHung, whatever the error says.
func limited(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(ctx)
	if err == nil || errors.Is(err, page.ErrLost) || errors.Is(err, page.ErrGone) || errors.Is(err, page.ErrDialog) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w in %v", page.ErrHung, limit)
	}
	return err
}

// judge turns a fault into a verdict.
func judge(fault error) Verdict {
	switch {
	case errors.Is(fault, ErrExited):
		return Verdict{Code: CodeUnreachable, Detail: "the browser's process ended"}
	case errors.Is(fault, page.ErrLost):
		return Verdict{Code: CodeDisconnected, Detail: "the connection to the browser ended"}
	case errors.Is(fault, page.ErrGone):
		return Verdict{Code: CodePageStale, Detail: "the page crashed, was detached or closed"}
	case errors.Is(fault, page.ErrHung):
		return Verdict{Code: CodeTimeout, Detail: "the page did not answer, also after its script was ended"}
	}
	return Verdict{Code: CodeDisconnected, Detail: "the browser answered with an error"}
}
