package controller_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// A guest is a worker without a worker: it says what its script says, and waits
// for the answer of each call.
type guest struct {
	script  []sandbox.Inbound
	reached chan struct{} // closed once it runs
	gate    chan struct{} // it runs on when this is closed; nil for at once

	calls   chan sandbox.Inbound
	replies chan struct{}
	killed  chan struct{}
	once    sync.Once

	mu   sync.Mutex // guards exit
	exit sandbox.Exit
}

func newGuest(gate chan struct{}, script ...sandbox.Inbound) *guest {
	script = append([]sandbox.Inbound{{Call: abi.CallStart}}, script...)
	return &guest{script: script, gate: gate, reached: make(chan struct{}), calls: make(chan sandbox.Inbound),
		replies: make(chan struct{}, 1),
		killed:  make(chan struct{}), exit: sandbox.Exit{Kind: sandbox.ExitExited}}
}

func say(c abi.Call, message string) sandbox.Inbound {
	return sandbox.Inbound{Call: c, Payload: []byte(message)}
}

var (
	done = say(abi.CallDone, `{"status":"succeeded","records_emitted":0}`)
	asks = say(abi.CallInteract, `{"request_id":"login","kind":"approval","message":"May I?"}`)
)

func (g *guest) Go() error {
	close(g.reached)
	go g.play()
	return nil
}

func (g *guest) play() {
	defer close(g.calls)
	if g.gate != nil {
		select {
		case <-g.gate:
		case <-g.killed:
			return
		}
	}
	for i, c := range g.script {
		c.ID = uint32(i + 1)
		select {
		case g.calls <- c:
		case <-g.killed:
			return
		}
		select {
		case <-g.replies:
		case <-g.killed:
			return
		}
	}
}

func (g *guest) Calls() <-chan sandbox.Inbound { return g.calls }

func (g *guest) Reply(uint32, abi.Errno, []byte) error {
	g.replies <- struct{}{}
	return nil
}

func (g *guest) Credit(int, int) error { return nil }

func (g *guest) Kill() {
	g.once.Do(func() { close(g.killed) })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.exit = sandbox.Exit{Kind: sandbox.ExitKilled}
}

func (g *guest) Exit() sandbox.Exit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.exit
}

func (g *guest) Usage() sandbox.Usage         { return sandbox.Usage{} }
func (g *guest) Isolation() sandbox.Isolation { return sandbox.Isolation{} }

func memoryStore(t *testing.T) store.Store {
	t.Helper()
	st, err := badger.OpenURL("memory:", badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

const manifest = `{"protocol_version": "0.1.0", "connector_id": "player", "version": "1", "display_name": "Player",
	"runtime_requirements": {"bindings": {"interactive": {"required": true}}}, "capabilities": {"human_interaction": ["approval"]},
	"streams": [{"name": "rows", "semantics": "append_only", "primary_key": ["id"],
		"schema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}]}`

// A stage makes runs of scripted guests on one store.
type stage struct {
	t     *testing.T
	store store.Store
	owner run.Owner
	made  int
	ended chan *run.Result // of every job, nil for those that came to no end
}

func newStage(t *testing.T, st store.Store) *stage {
	return &stage{t: t, store: st, ended: make(chan *run.Result, 1000)}
}

type nobody struct{}

func (nobody) Ask(ctx context.Context, _ run.Question) (host.Answer, error) {
	<-ctx.Done()
	return host.Answer{}, ctx.Err()
}

// job is a run of a connection of its own.
func (s *stage) job(g *guest) func(context.Context, run.Slots) (controller.Job, error) {
	s.made++
	connection := store.ConnectionID("c" + strconv.Itoa(s.made))
	return s.jobOf(connection,
		func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return g, nil, nil }, g)
}

func (s *stage) jobOf(connection store.ConnectionID,
	launch func(context.Context, run.Launch) (run.Guest, binding.Binding, error), g *guest,
) func(context.Context, run.Slots) (controller.Job, error) {
	s.t.Helper()
	m, err := abi.ReadManifest([]byte(manifest))
	if err != nil {
		s.t.Fatal(err)
	}
	c := store.Connection{ID: connection, ConnectorID: "player", Enabled: true}
	if err := s.store.PutConnection(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	return func(ctx context.Context, slots run.Slots) (controller.Job, error) {
		plan, err := run.Prepare(ctx, s.store, run.Input{
			Connector:  store.Connector{ID: "player", Name: "player", Digest: "sha256:00"},
			Connection: c, Manifest: m, Transport: "abi", UsesABI: true, Interactive: true, Trigger: "manual",
			Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
		})
		if err != nil {
			return controller.Job{}, err
		}
		owner := s.owner
		if owner == nil {
			owner = nobody{}
		}
		r := run.New(plan, run.Deps{Store: s.store, Owner: owner, HostID: "host_test", BootEpoch: "boot_test",
			Launch: launch, Slots: slots})
		return controller.Job{Run: r, Ended: func(got *run.Result) { s.ended <- got }, Abandon: g.Kill}, nil
	}
}

func (s *stage) start(c *controller.Controller, g *guest) store.Run {
	s.t.Helper()
	rec, err := c.Start(s.t.Context(), s.job(g))
	if err != nil {
		s.t.Fatal(err)
	}
	return rec
}

func (s *stage) row(id store.RunID) store.Run {
	s.t.Helper()
	rec, err := s.store.Run(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return rec
}
