package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
)

// A fakeBrowser is a browser binding without a browser: it does what a test says and
// records what the run tells it.
type fakeBrowser struct {
	back    binding.Run
	said    chan string // asked, answered, assisted and paused, as text
	handle  func(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno)
	closing func(ctx context.Context) error

	mu         sync.Mutex // guards what follows
	registered bool
	surface    abi.Attachment
	sealed     []string
	closed     int
	late       []string // what was called after Close
}

var _ app.Browser = (*fakeBrowser)(nil)

func newFakeBrowser() *fakeBrowser {
	return &fakeBrowser{
		said: make(chan string, 64), registered: true,
		surface: abi.Attachment{Kind: "browser_surface", Ref: "sf_1", Status: "available"},
		handle:  func(context.Context, abi.Call, []byte) ([]byte, abi.Errno) { return []byte(`{}`), abi.OK },
		closing: func(context.Context) error { return nil },
	}
}

func (b *fakeBrowser) note(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed > 0 {
		b.late = append(b.late, what)
	}
}

func (b *fakeBrowser) Begin(_ string, back binding.Run) { b.back = back }

func (b *fakeBrowser) Handle(ctx context.Context, call abi.Call, payload []byte) ([]byte, abi.Errno) {
	b.note("handle")
	return b.handle(ctx, call, payload)
}

func (b *fakeBrowser) Takes(call abi.Call, payload []byte) bool {
	handle, named := binding.Handle(call, payload)
	return call == abi.CallBrowser || named && handle == binding.HandlesOf
}

func (b *fakeBrowser) Seal(field, handle, _ string, _ [][]byte, to []abi.Destination) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range to {
		b.sealed = append(b.sealed, field+" "+handle[:17]+" "+d.Origin+" "+strings.Join(d.Placements, ","))
	}
}

func (b *fakeBrowser) Surface() abi.Attachment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.surface
}

func (b *fakeBrowser) Probe(context.Context) abi.Attachment {
	b.said <- "probe"
	return b.Surface()
}

func (b *fakeBrowser) Page(context.Context) (title, host string) {
	return "Sign in\x1b[2J", "bank.example"
}

func (b *fakeBrowser) Spent() bool { return false }

func (b *fakeBrowser) Registered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.registered
}

func (b *fakeBrowser) Asked(id, kind string, _ time.Time) {
	b.note("asked")
	b.said <- "asked " + kind
}

func (b *fakeBrowser) Answered(string) {
	b.note("answered")
	b.said <- "answered"
}

func (b *fakeBrowser) Assisted(id string, a *abi.AssistanceMessage) {
	b.note("assisted")
	b.said <- fmt.Sprintf("assisted %t", a != nil)
}

func (b *fakeBrowser) Paused(on bool) {
	b.note("paused")
	b.said <- fmt.Sprintf("paused %t", on)
}

func (b *fakeBrowser) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed++
	b.mu.Unlock()
	return b.closing(ctx)
}

// over checks that the binding was closed once and then left alone.
func (b *fakeBrowser) over(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != 1 || len(b.late) > 0 {
		t.Errorf("the browser was closed %d times and told %q afterwards", b.closed, b.late)
	}
}

// told waits for the next thing that the run tells the browser.
func (b *fakeBrowser) told(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-b.said:
		if got != want {
			t.Fatalf("the browser was told %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("the browser was not told %q", want)
	}
}

// browses gives a drive a browser.
func browses(t *testing.T, b *fakeBrowser, more func(*run.Input, *run.Deps)) func(*run.Input, *run.Deps) {
	t.Helper()
	return func(in *run.Input, d *run.Deps) {
		in.Manifest = browserManifest(t, `{}`)
		in.Connection.Approved.Browser = true
		d.Bindings = []binding.Binding{b}
		if more != nil {
			more(in, d)
		}
	}
}

// browserManifest returns a manifest whose browser binding has the members.
func browserManifest(t *testing.T, members string) *abi.Manifest {
	t.Helper()
	s := &scenario{setup: []directive{
		{"manifest", `{"capabilities":{"human_interaction":["otp"]},"runtime_requirements":{"bindings":{"browser":` + members + `}},
			"sluice":{"interaction_fields":{"otp.code":{"destinations":[{"origin":"https://shop.example","placements":["browser_fill"]}]}}}}`}}}
	raw, err := s.manifest()
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.ReadManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// counted returns how many events of a type a run has.
func counted(p *played, typ string) int {
	n := 0
	for _, e := range p.events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

// handleOf is the payload of read and close.
func handleOf(c abi.Call, handle uint32) fakeCall {
	p := []byte{byte(handle), byte(handle >> 8), byte(handle >> 16), byte(handle >> 24)}
	if c == abi.CallRead {
		p = slices.Concat(p, []byte{0, 1, 0, 0})
	}
	return fakeCall{c, p}
}
