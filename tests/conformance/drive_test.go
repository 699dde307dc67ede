package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// A puppet is a guest that does what a test says, one step at a time, and records what
// the host does to it.
type puppet struct {
	calls chan sandbox.Inbound
	said  chan string // replies, credit, suspend and resume, as text
	exit  sandbox.Exit
	// computed is the processor time that it has used.
	computed atomic.Int64

	mu     sync.Mutex // guards what follows
	sent   uint32
	killed bool
	left   bool
}

var _ run.Guest = (*puppet)(nil)

func newPuppet() *puppet {
	return &puppet{calls: make(chan sandbox.Inbound, 16), said: make(chan string, 64), exit: exited(0)}
}

// does sends a call and does not wait for its reply.
func (g *puppet) does(c fakeCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent++
	g.calls <- sandbox.Inbound{ID: g.sent, Call: c.call, Payload: c.payload}
}

// leaves ends the guest with a code.
func (g *puppet) leaves(code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.left {
		g.left, g.exit = true, exited(code)
		close(g.calls)
	}
}

func (g *puppet) Go() error                     { return nil }
func (g *puppet) Calls() <-chan sandbox.Inbound { return g.calls }
func (g *puppet) Usage() sandbox.Usage {
	return sandbox.Usage{HostCalls: 7, CPU: time.Duration(g.computed.Load())}
}
func (g *puppet) Isolation() sandbox.Isolation { return sandbox.Isolation{} }
func (g *puppet) Credit(frames, bytes int) error {
	g.said <- fmt.Sprintf("credit %d", frames)
	return nil
}
func (g *puppet) Suspend() error          { g.said <- "suspend"; return nil }
func (g *puppet) Resume() error           { g.said <- "resume"; return nil }
func (g *puppet) EndEmit(abi.Errno) error { g.said <- "end emits"; return nil }

func (g *puppet) Reply(id uint32, errno abi.Errno, payload []byte) error {
	g.said <- strings.Replace(fmt.Sprintf("reply %d %s", id, errno), "sluice: ", "", 1)
	return nil
}

func (g *puppet) Exit() sandbox.Exit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.exit
}

func (g *puppet) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.killed = true
	if !g.left {
		g.left, g.exit = true, sandbox.Exit{Kind: sandbox.ExitKilled}
		close(g.calls)
	}
}

// A drive is one run of a puppet in progress.
type drive struct {
	t      *testing.T
	stage  *stage
	guest  *puppet
	run    *run.Run
	events chan store.Event // as they become durable
	seen   []store.Event
	ended  chan struct{}
	ctx    context.Context // of Do
	result *run.Result
	err    error
}

// drive starts a run of a puppet. change may alter what it is started with.
func (g *stage) drive(t *testing.T, change func(*run.Input, *run.Deps)) *drive {
	t.Helper()
	d := &drive{t: t, stage: g, guest: newPuppet(), events: make(chan store.Event, 1000), ended: make(chan struct{}),
		ctx: context.Background()}
	in := run.Input{
		Connector:  store.Connector{ID: "player", Name: "player", Digest: "sha256:00"},
		Connection: store.Connection{ID: g.connection, ConnectorID: "player", Enabled: true},
		Manifest:   itemsManifest(t), Transport: "abi", UsesABI: true, Interactive: true, Trigger: "manual",
		Kinds: app.Kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
	}
	in.Budgets.CancelGrace, in.Budgets.Drain = patience, patience
	deps := run.Deps{
		Store: g.host.Store, HostID: "host_test", BootEpoch: "boot_test",
		Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return d.guest, nil, nil },
		Watch:  func(e store.Event) { d.events <- e },
	}
	if change != nil {
		change(&in, &deps)
	}
	if err := g.host.Store.PutConnection(context.Background(), in.Connection); err != nil {
		t.Fatal(err)
	}
	plan, err := run.Prepare(context.Background(), g.host.Store, in)
	if err != nil {
		t.Fatal(err)
	}
	d.run = run.New(plan, deps)
	return d
}

// resumed is the run of a host that was killed, which another resumes from its journal. change may alter what it is
// started with.
func (g *stage) resumed(t *testing.T, killed *drive, key []byte, change func(*run.Input)) *drive {
	t.Helper()
	leases, err := g.host.Store.Leases(t.Context())
	if err != nil || len(leases) != 1 {
		t.Fatal(leases, err)
	}
	s, err := run.Suspension(t.Context(), g.host.Store, leases[0], key)
	if err != nil {
		t.Fatal(err)
	}
	s.Cause = "host_started"
	return g.drive(t, func(in *run.Input, deps *run.Deps) {
		if change != nil {
			change(in)
		}
		deps.ID, deps.History = killed.run.ID, &run.History{Key: key, Resumable: true, Resume: s}
	})
}

// begin performs the run in the background; if the test ends first, the guest is
// stopped.
func (d *drive) begin() *drive {
	d.t.Helper()
	go func() {
		defer close(d.ended)
		d.result, d.err = d.run.Do(d.ctx)
	}()
	d.t.Cleanup(func() {
		d.guest.Kill()
		<-d.ended
	})
	return d
}

// started calls begin and waits until the guest has START.
func (d *drive) started() *drive {
	d.t.Helper()
	d.begin()
	d.guest.does(fakeCall{call: abi.CallStart})
	d.heard("reply 1 OK")
	return d
}

// heard waits for the next thing that the host does to the guest, which must be the
// given one.
func (d *drive) heard(want string) {
	d.t.Helper()
	select {
	case got := <-d.guest.said:
		if got != want {
			d.t.Fatalf("the guest was told %q, want %q", got, want)
		}
	case <-time.After(patience):
		d.t.Fatalf("the guest was not told %q", want)
	}
}

// quiet checks that the host did nothing more to the guest.
func (d *drive) quiet() {
	d.t.Helper()
	select {
	case got := <-d.guest.said:
		d.t.Fatalf("the guest was told %q", got)
	default:
	}
}

// until waits for an event of that type and returns it.
func (d *drive) until(typ string) store.Event {
	d.t.Helper()
	timer := time.After(patience)
	for {
		select {
		case e := <-d.events:
			d.seen = append(d.seen, e)
			if e.Type == typ {
				return e
			}
		case <-timer:
			d.t.Fatalf("no %s; there were %s", typ, types(d.seen))
		}
	}
}

// end waits for the run's end and checks the rules of every run.
func (d *drive) end() *played {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatal("the run does not end")
	}
	if d.err != nil {
		d.t.Fatal(d.err)
	}
	p := &played{result: d.result, events: d.stage.events(d.t, d.run.ID)}
	d.stage.invariants(d.t, p)
	return p
}

// types lists events by type, one commit in brackets.
func types(events []store.Event) string {
	var b strings.Builder
	for i, e := range events {
		switch {
		case e.CausationID != "":
			b.WriteString(" ")
		case i > 0:
			b.WriteString(" | ")
		}
		b.WriteString(e.Type)
	}
	return b.String()
}

// after lists the events behind the start.
func after(p *played) string {
	i := slices.IndexFunc(p.events, func(e store.Event) bool { return e.Type == "node.started" })
	return types(p.events[i+1:])
}

// member is a member of an event's data, as JSON.
func member(t *testing.T, e store.Event, name string) string {
	t.Helper()
	var d map[string]json.RawMessage
	if err := json.Unmarshal(e.Data, &d); err != nil {
		t.Fatal(err)
	}
	return string(d[name])
}

// A desk is an owner who answers when the test says so.
type desk struct {
	asked   chan run.Question
	answers chan host.Answer
	live    chan string
	settled chan error
}

func newDesk() *desk {
	return &desk{make(chan run.Question, 4), make(chan host.Answer), make(chan string, 16), make(chan error, 16)}
}

var (
	_ run.LiveOwner = (*desk)(nil)
	_ run.Settler   = (*desk)(nil)
)

func (d *desk) Settled(_ store.RunID, _ string, err error) { d.settled <- err }

func (d *desk) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	d.asked <- q
	select {
	case a := <-d.answers:
		return a, nil
	case <-ctx.Done():
		return host.Answer{}, ctx.Err()
	}
}

func (d *desk) AssistanceOpened(_ store.RunID, a run.LiveAssistance) {
	raw, _ := json.Marshal(a)
	d.live <- "open " + string(raw)
}

func (d *desk) AssistanceClosed(_ store.RunID, id string) { d.live <- "close " + id }

var (
	question = say(abi.CallInteract, `{"request_id":"q1","kind":"approval","message":"May I?"}`)
	forever  = fakeCall{abi.CallSleep, []byte{0, 0, 0, 0, 0, 0, 0, 1}}
)
