package conformance

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A fakeGuest stands in for a worker: it makes a list of calls, then ends. It continues
// whatever the host answers, until it is killed.
type fakeGuest struct {
	script []fakeCall
	exit   sandbox.Exit

	calls   chan sandbox.Inbound
	replies chan struct{}
	killed  chan struct{}
	once    sync.Once
}

// A fakeCall is one call of a fake guest.
type fakeCall struct {
	call    abi.Call
	payload []byte
}

var _ run.Guest = (*fakeGuest)(nil)

func newFakeGuest(script []fakeCall, exit sandbox.Exit) *fakeGuest {
	return &fakeGuest{
		script: script, exit: exit,
		calls: make(chan sandbox.Inbound), replies: make(chan struct{}, 1), killed: make(chan struct{}),
	}
}

func (g *fakeGuest) Go() error {
	go func() {
		defer close(g.calls)
		for i, c := range g.script {
			select {
			case g.calls <- sandbox.Inbound{ID: uint32(i + 1), Call: c.call, Payload: c.payload}:
			case <-g.killed:
				return
			}
			select {
			case <-g.replies:
			case <-g.killed:
				return
			}
		}
	}()
	return nil
}

func (g *fakeGuest) Calls() <-chan sandbox.Inbound { return g.calls }

func (g *fakeGuest) Reply(uint32, abi.Errno, []byte) error {
	g.replies <- struct{}{}
	return nil
}

func (g *fakeGuest) Credit(int, int) error {
	g.replies <- struct{}{}
	return nil
}

func (g *fakeGuest) Kill() {
	g.once.Do(func() { close(g.killed) })
	g.exit = sandbox.Exit{Kind: sandbox.ExitKilled}
}

func (g *fakeGuest) Usage() sandbox.Usage         { return sandbox.Usage{} }
func (g *fakeGuest) Exit() sandbox.Exit           { return g.exit }
func (g *fakeGuest) Isolation() sandbox.Isolation { return sandbox.Isolation{} }

// started is the call every script begins with.
func started(more ...fakeCall) []fakeCall {
	return append([]fakeCall{{call: abi.CallStart}}, more...)
}

func say(c abi.Call, message string) fakeCall { return fakeCall{c, []byte(message)} }

// emit is a frame of one record.
func emit(stream int, key, data string, remove bool) fakeCall {
	b := []byte{'S', 'R', 1, 0, 1, 0, 0, 0, 0, 0}
	if remove {
		b[8] = 1
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(stream))
	b = binary.LittleEndian.AppendUint64(b, 1_767_225_600_000_000)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return fakeCall{abi.CallEmit, append(append(b, key...), data...)}
}

func exited(code int) sandbox.Exit {
	return sandbox.Exit{Kind: sandbox.ExitExited, Code: uint32(code)}
}

// perform runs a guest of this process on the stage's store.
func (g *stage) perform(t tester, guest run.Guest, launchErr error, change func(*run.Input, *run.Deps)) *played {
	t.Helper()
	ctx := context.Background()
	manifest, err := g.scenario.manifest()
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.ReadManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	in := run.Input{
		Connector:  store.Connector{ID: "player", Name: "player", Digest: "sha256:00", Manifest: manifest},
		Connection: store.Connection{ID: g.connection, ConnectorID: "player", Enabled: true},
		Manifest:   m, Transport: "abi", UsesABI: true, Interactive: true, Trigger: "manual",
		Kinds: app.Kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
	}
	out := &played{}
	deps := run.Deps{
		Store: g.host.Store, Owner: &scripted{play: out, answers: []string{"success", "cancelled", "timeout", "success"}},
		HostID: "host_test", BootEpoch: "boot_test",
		Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return guest, nil, launchErr },
	}
	if change != nil {
		change(&in, &deps)
	}
	if err := g.host.Store.PutConnection(ctx, in.Connection); err != nil {
		t.Fatal(err)
	}
	plan, err := run.Prepare(ctx, g.host.Store, in)
	if err != nil {
		t.Fatal(err)
	}
	current := run.New(plan, deps)
	if g.starting != nil {
		g.starting(current)
	}
	if out.result, err = current.Do(ctx); err != nil {
		t.Fatal(err)
	}
	out.events = g.events(t, out.result.RunID)
	return out
}
