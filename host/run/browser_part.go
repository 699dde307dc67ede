package run

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// browsing is the browser binding of a run and what it says. Only the loop touches
// what is not said to be guarded.
type browsing struct {
	*parts
	binding  Browser
	closed   bool
	calling  bool // a call of it is being handled
	lost     bool // its surface was
	spent    bool // no attempt may follow
	wake     chan struct{}
	over     chan struct{}   // closed with the binding
	counts   map[string]int  // events so far, by type
	used     map[string]bool // where sealed values were typed
	surfaces map[string]abi.Attachment

	mu   sync.Mutex // guards what follows
	said []func()   // in order; nil once it is over
	deaf bool
}

func newBrowsing(all *parts) *browsing {
	br := &browsing{
		parts: all, binding: all.deps.Browser, wake: make(chan struct{}, 1), over: make(chan struct{}),
		counts: map[string]int{}, used: map[string]bool{}, surfaces: map[string]abi.Attachment{},
	}
	if br.binding != nil {
		br.binding.Begin(string(br.id), backchannel{br})
	}
	return br
}

// word is signalled when the binding said something.
func (br *browsing) word() <-chan struct{} { return br.wake }

// serve returns what handles a call of the binding, until served.
func (br *browsing) serve() handler {
	br.calling = true
	return br.binding.Handle
}

func (br *browsing) served() { br.calling = false }

// wasted reports whether a stored password was sent for nothing.
func (br *browsing) wasted() bool { return br.spent }

// open is the binding while it may be called, nil for none.
func (b *browsing) open() Browser {
	if b.closed {
		return nil
	}
	return b.binding
}

// takes reports whether a call is the binding's: its own, or of a handle that came
// of one.
func (b *browsing) takes(in sandbox.Inbound) bool {
	binding := b.open()
	if binding == nil {
		return false
	}
	var handle uint32
	var err error
	switch in.Call {
	case abi.CallBrowser:
		return true
	case abi.CallRead:
		handle, _, err = abi.ParseRead(in.Payload)
	case abi.CallClose:
		handle, err = abi.ParseClose(in.Payload)
	default:
		return false
	}
	return err == nil && handle >= HandlesOf && binding.Owns(handle)
}

// post hands what the binding says to the loop; false once nobody listens. It may
// be called from any goroutine.
func (b *browsing) post(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deaf {
		return false
	}
	b.said = append(b.said, f)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// take returns what was said since it was last asked.
func (b *browsing) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.said
	b.said = nil
	return said
}

// end makes the binding unheard.
func (b *browsing) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf, b.said = true, nil
	close(b.over)
}

// listen acts on what the binding said, in order.
func (br *browsing) listen() {
	for _, f := range br.take() {
		f()
	}
}

// A backchannel is the run as its browser sees it. Its methods only leave word.
type backchannel struct{ br *browsing }

var _ BrowserRun = backchannel{}

func (c backchannel) Event(typ, status string, d map[string]any) {
	c.br.post(func() { c.br.browserEvent(typ, status, d) })
}

func (c backchannel) SealedUsed(field, origin, placement string) {
	c.br.post(func() { c.br.sealedTyped(field, origin, placement) })
}

func (c backchannel) Progress(message string) {
	c.br.post(func() { c.br.hostProgress(message) })
}

func (c backchannel) Lost(surfaceID string, p BrowserProbe) {
	c.br.post(func() { c.br.surfaceLost(surfaceID, p) })
}

func (c backchannel) Attachment(a abi.Attachment) {
	c.br.post(func() { c.br.surfaceChanged(a) })
}

func (c backchannel) End(f BrowserFailure) {
	c.br.post(func() { c.br.endedByBrowser(f) })
}

func (c backchannel) Artifact(a BrowserArtifact) {
	c.br.post(func() { c.br.leftArtifact(a) })
}

func (c backchannel) Ask(ctx context.Context, message string, timeout time.Duration) (id, status string, err error) {
	q := &hostQuestion{message: message, timeout: timeout, reply: make(chan hostAnswer, 1)}
	if !c.br.post(func() { c.br.questions.askForHost(q) }) {
		return "", "", ErrEnding
	}
	select {
	case a := <-q.reply:
		return a.id, a.status, a.err
	case <-c.br.over:
		return "", "", ErrEnding
	case <-ctx.Done():
		c.br.post(func() { c.br.questions.withdraw(q) })
		return "", "", ctx.Err()
	}
}

// How long a browser may take to close: its trace, a graceful end
// and what is in between. A binding that does not keep to it is left behind a
// little later.
const (
	browserClose = 20 * time.Second
	browserLeft  = 2 * time.Second
)

// closeBrowser releases the surface, on every path before the terminal
// event. What the binding says meanwhile is recorded, and the lease is kept.
func (br *browsing) closeBrowser() {
	b := br
	if b.binding == nil {
		return
	}
	b.closed = true
	br.abortBrowserCall()
	b.spent = b.binding.Spent()
	ctx, cancel := context.WithTimeout(br.ctx, browserClose)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.binding.Close(ctx) }()
	late := time.NewTimer(browserClose + browserLeft)
	defer late.Stop()
	for closed := false; !closed; {
		var err error
		select {
		case err = <-done:
			closed = true
		case <-late.C:
			err, closed = context.DeadlineExceeded, true
		case <-b.wake:
			br.listen()
		case now := <-br.loop.ticking():
			if !br.outcome.over() {
				br.lease.renew(now)
			}
		}
		if err != nil {
			slog.Error("close browser", "run", br.id, "error", err)
		}
	}
	br.listen()
	b.end()
	br.loop.settled()
}

// unrepeated is the hint of a failure after which a stored password was sent for
// nothing: whatever the connector says of it, its owner looks first.
func (b *browsing) unrepeated(h Hint) Hint {
	switch {
	case !b.spent:
		return h
	case h.Action == abi.RefreshCredentials:
		return Hint{h.Action, false}
	}
	return Hint{abi.ManualActionRequired, false}
}

// abortBrowserCall ends a call that nobody waits for any more, so that the binding
// is not closed under it. One that does not heed its context is left to that.
func (br *browsing) abortBrowserCall() {
	if !br.calling {
		return
	}
	br.calls.abortCall()
	late := time.NewTimer(browserLeft)
	defer late.Stop()
	select {
	case f := <-br.calls.ended():
		f.in.Release()
		br.calling = false
	case <-late.C:
	}
}

// endedByBrowser ends collection as failed, as a DONE of the guest with that error
// would. A guest that sent its DONE before has ended it already.
func (br *browsing) endedByBrowser(f BrowserFailure) {
	if !br.outcome.ready() || br.outcome.proposal() != nil || br.outcome.left() != nil {
		return
	}
	failure := &abi.DoneError{Message: redact.Gap(br.canary.Text(f.Message), 500), Code: f.Code, Retryable: &f.Retryable}
	if f.Hint != "" {
		failure.RecoveryHint = &abi.RecoveryHint{Action: f.Hint, Retryable: &f.Retryable}
	}
	br.outcome.propose(&abi.DoneMessage{Status: abi.Failed, RecordsEmitted: ptr(br.proto.Records()), Error: failure})
	br.outcome.latch(&cause{reason: "connector_reported_failed", origin: "runtime", message: failure.Message})
}

// The most that a browser adds to a timeline: of its actions all, then failures and
// a count now and then; of refused requests no more, and of each other
// kind, which a guest can ask for as fast as it likes, as many as of actions.
const (
	allActions  = 1000
	actionCount = 100
	mostDenials = 200
)

const (
	eventAction = "run.browser_action"
	eventDenied = "run.browser_egress_denied"
)

// browserEvent records what the binding says happened. A page may have a say in
// hosts and roles, so the canary looks at all of it.
func (br *browsing) browserEvent(typ, status string, d data) {
	if !strings.HasPrefix(typ, "run.browser_") && !strings.HasPrefix(typ, "run.stream_") {
		slog.Error("the browser recorded an event of another kind", "run", br.id, "type", typ)
		return
	}
	b := br
	b.counts[typ]++
	n := b.counts[typ]
	switch {
	case typ == eventDenied && n > mostDenials:
		return
	case typ == eventAction && n > allActions:
		if n%actionCount == 0 {
			br.recordBrowser(typ, abi.Succeeded, data{"actions": n})
		}
		if status != abi.Failed {
			return
		}
	case n > allActions:
		return
	}
	br.recordBrowser(typ, status, d)
}

func (br *browsing) recordBrowser(typ, status string, d data) {
	e := br.journal.event(typ, status, cloneData(d))
	e.Data = br.canary.JSON(e.Data)
	br.commits.submit(&store.Commit{Events: []store.Event{e}}, nil)
}

// cloneData copies a payload that somebody else made.
func cloneData(d data) data {
	out := make(data, len(d)+1)
	for name, v := range d {
		out[name] = v
	}
	return out
}

// sealedTyped is R164 for values that were typed into a page.
func (br *browsing) sealedTyped(field, origin, placement string) {
	key := field + "\x00" + origin + "\x00" + placement
	if br.used[key] {
		return
	}
	br.used[key] = true
	e := br.journal.event("run.sealed_value_used", "succeeded", data{"field": field, "origin": origin, "placement": placement})
	br.commits.submit(&store.Commit{Events: []store.Event{e}}, nil)
}

// leftArtifact registers a file that the run leaves to its owner. What
// it is and how to know it again stands in the log, which alone says what there is;
// the file lies where its type has its files.
func (br *browsing) leftArtifact(a BrowserArtifact) {
	br.commits.submit(&store.Commit{Events: []store.Event{br.journal.event("artifact.created", "succeeded", data{
		"artifactId": newULID("art_", time.Now()), "artifactType": a.Type, "nodeId": br.plan.manifest.Node(), "version": 1,
		"summary": a.Summary, "mediaType": a.MediaType, "size": a.Size, "digest": a.Digest,
	})}}, nil)
}

// hostProgress is progress that no connector reported.
func (br *browsing) hostProgress(message string) {
	e := br.journal.event("run.progress_reported", "in_progress", data{"message": redact.Progress(br.canary.Text(message)), "origin": "host"})
	br.commits.submit(&store.Commit{Events: []store.Event{e}}, nil)
}
