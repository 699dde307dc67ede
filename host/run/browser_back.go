package run

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
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
