package chromium

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Arguments are the command line that options make.
func Arguments(o Options, sandboxed bool) []string { return arguments(o, sandboxed) }

// PID is of the main process.
func (b *Browser) PID() int { return b.group.pid }

// Load loads an address in the active tab, past all checks, until its load event.
func (b *Browser) Load(ctx context.Context, url string) error {
	t, err := b.current()
	if err != nil {
		return err
	}
	n, err := cdp.Call(ctx, t.session, cdppage.Navigate, cdppage.NavigateParams{URL: url})
	if err == nil && n.ErrorText != "" {
		err = fmt.Errorf("%s", n.ErrorText)
	}
	if err != nil {
		return err
	}
	for { // the answer may come before the new document does
		ready, err := b.Eval(ctx, `document.readyState === "complete" && location.href !== "about:blank"`)
		if ctx.Err() != nil || err == nil && ready == "true" {
			return ctx.Err()
		}
	}
}

// Eval is the JSON of an expression's value in the active tab, as by a user.
func (b *Browser) Eval(ctx context.Context, expression string) (string, error) {
	t, err := b.current()
	if err != nil {
		return "", err
	}
	got, err := cdp.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: expression, AwaitPromise: new(true), ReturnByValue: new(true), UserGesture: new(true),
	})
	switch {
	case err != nil:
		return "", err
	case got.ExceptionDetails != nil:
		return "", fmt.Errorf("%s", got.ExceptionDetails.Exception.Description)
	}
	return string(got.Result.Value), nil
}

// CrashPage makes the renderer of a tab crash, CloseTarget closes a tab past the
// list of tabs.
func (b *Browser) CrashPage(ctx context.Context, tab string) {
	session := b.tab(tab).session
	go func() { _, _ = cdp.Call(ctx, session, cdppage.Crash, cdp.Empty{}) }() // it does not answer
}

func (b *Browser) CloseTarget(ctx context.Context, tab string) error {
	_, err := cdp.Call(ctx, b.cdp, target.CloseTarget, target.CloseTargetParams{TargetID: b.tab(tab).target})
	return err
}

func (b *Browser) tab(id string) *Tab {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tabs {
		if t.id == id {
			return t
		}
	}
	return nil
}

// Heard is how many of these messages the library could not decode, and what ended
// the reading of them.
func Heard(ctx context.Context, stream io.ReadCloser) (undecodable int64, err error) {
	w := &wire{PipeConn: chromedp.NewPipeConn(&bounded{ReadCloser: stream}, nil), known: map[cdproto.MethodType]bool{}}
	for err == nil {
		err = w.Read(ctx, new(cdproto.Message))
	}
	return w.undecodable.Load(), err
}

// Unpictured is what an error of the browser about a picture means.
var Unpictured = unpictured

// Fail has the gate's listener fail, as no caller can.
func (g *Gate) Fail() {
	g.mu.Lock()
	l := g.listener
	g.mu.Unlock()
	_ = l.Close()
}

// Merge is the merging of denials.
type Merge struct{ d denials }

// NewMerge tells told.
func NewMerge(told func(Denial)) *Merge { return &Merge{denials{told: told, left: mostLines}} }

func (m *Merge) Add(host string, port uint16, verdict string) {
	m.d.add(Denial{host, port, verdict, 1})
}
func (m *Merge) Close() { m.d.close() }

// Last is the newest verdict on a place.
func (m *Merge) Last(host string, port uint16) string { return m.d.last(destination{host, port}) }

// Authority reads the target of a CONNECT.
func Authority(s string) (host string, port uint16, ok bool) {
	p, ok := authority(s)
	return p.host, p.port, ok
}

// Preamble reads what a tunnel begins with. sent is what would be sent on.
func Preamble(host string, port uint16, tls, plain bool, data []byte) (verdict string, sent []byte, err error) {
	o := &preamble{from: bytes.NewReader(data)}
	verdict = o.read(destination{host, port}, tls, plain)
	return verdict, o.seen, o.err
}

// MostPreamble is how much is read of it.
const MostPreamble = mostPreamble

// Facts are what is known of a browser.
type Facts struct {
	Path    string
	Product string
	Version string
	Shell   bool
	// UID is "own" where each browser has one, or "shared" with the host.
	UID string
	// Sandbox is "on", or says which wall was not seen to stand.
	Sandbox string
	// Egress is "namespace" or "flags".
	Egress string
	// Undecodable counts the events that the library has no name for, or could not
	// read.
	Undecodable int64
}

// Facts are those of this browser; they may be asked for at any time.
func (b *Browser) Facts() Facts {
	f := Facts{
		Path: b.options.Binary.Path, Product: b.options.Binary.Product, Version: b.options.Binary.Version,
		Shell: b.options.Binary.Shell, UID: "shared", Sandbox: b.sandbox.String(), Egress: ModeFlags,
		Undecodable: b.Undecodable(),
	}
	if b.options.UID != os.Geteuid() && b.options.UID != 0 {
		f.UID = "own"
	}
	if b.options.Namespace {
		f.Egress = ModeNamespace
	}
	return f
}

// Err is why the gate is dead: ErrClosed, or what failed; nil while it is not.
func (g *Gate) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// GateCounts are how many decisions a gate made in its life.
type GateCounts struct{ Allowed, Denied int64 }

// Counts are those until now.
func (g *Gate) Counts() GateCounts { return GateCounts{g.count.allowed.Load(), g.count.denied.Load()} }

// NewTab opens an empty tab and makes it the active one. page.ErrTooLarge says that
// there are as many as there may be.
func (b *Browser) NewTab(ctx context.Context) (page.Tab, error) {
	if b.full() {
		return nil, page.ErrTooLarge
	}
	id, err := b.create(ctx)
	if err != nil {
		return nil, b.why(ctx, err)
	}
	t, err := b.adopt(ctx, id)
	if err != nil {
		return nil, err
	}
	return t, b.Activate(ctx, t.id)
}
