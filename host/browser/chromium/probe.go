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

// errAnswer is an answer that is not what was asked for.
var errAnswer = errors.New("the browser answered something else")

// Ping asks the browser whether it answers. page.ErrHung is no answer before ctx
// ended, page.ErrLost no browser; any other error was its answer.
func (b *Browser) Ping(ctx context.Context) error {
	v, err := cdp.Call(ctx, b.cdp, browser.GetVersion, cdp.Empty{})
	if err == nil && v.Product == "" {
		err = errAnswer
	}
	return b.why(ctx, err)
}

// PingPage asks the active tab. page.ErrDialog says that it cannot answer because a
// dialog is open, page.ErrGone that it crashed, was detached, or there is none.
func (b *Browser) PingPage(ctx context.Context) error {
	t, err := b.current()
	if err != nil {
		return err
	}
	if t.dialogOpen() {
		return page.ErrDialog
	}
	got, err := cdp.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "1", ReturnByValue: new(true)})
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

// Interrupt ends the script that runs in the active tab.
func (b *Browser) Interrupt(ctx context.Context) error {
	t, err := b.current()
	if err != nil {
		return err
	}
	_, err = cdp.Call(ctx, t.session, runtime.TerminateExecution, cdp.Empty{})
	return b.why(ctx, err)
}

// current is the active tab, if it is of use.
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

// The bounds of a probe.
const (
	probeLimit     = 5 * time.Second
	pingLimit      = time.Second
	pingPageLimit  = 1500 * time.Millisecond
	interruptLimit = 250 * time.Millisecond
)

// Why a surface is not to be used, or lost.
const (
	CodeNotReady     = "browser_surface_not_ready"
	CodeUnreachable  = "browser_surface_cdp_unreachable"
	CodeDisconnected = "browser_surface_cdp_disconnected"
	CodePageStale    = "browser_surface_page_stale"
	CodeTimeout      = "browser_surface_probe_timeout"
)

// A Verdict is what a probe found out. Code and Detail, at most 200 bytes without
// addresses, paths or pids, are empty when it is OK.
type Verdict struct {
	OK     bool
	Code   string
	Detail string
	// Rescued: the page came back after its script was ended.
	Rescued bool
	// Dialog: the page could not be asked, because a dialog is open.
	Dialog bool
}

// A Probed can be asked whether it lives; a [page.Browser] can.
type Probed interface {
	Fault() error
	Ping(ctx context.Context) error
	PingPage(ctx context.Context) error
	Interrupt(ctx context.Context) error
}

// Probe asks a browser and its active page whether they answer. What is known
// to be wrong, and an answer that is an error, count at once; an answer that does not
// come must fail to come twice in a row, and once more after the page's script was
// ended. It takes at most 5 s. The error is that of ctx, when it ended first: then
// nothing is known.
func Probe(ctx context.Context, b Probed) (v Verdict, err error) {
	defer func() {
		if p := recover(); p != nil { // a probe that breaks is no proof of life
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

// ask is one probe of both levels. While a dialog is open only the browser counts.
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

// limited asks under a limit. No answer is page.ErrHung, whatever the error says.
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

// judge names what is wrong.
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
