package run_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// kinds are those that the runs of these tests are lent.
var kinds = binding.Kinds{network.Kind{}, browser.Kind{}}

// races is how often an answer and a loss are let loose on one question.
func races() int {
	if testing.Short() {
		return 1_000
	}
	return 10_000
}

// TestLossRacesAnswer lets the loss of a surface and the owner's answer meet.
// Exactly one of them closes the question, the other one is
// told so, and the guest hears of the winner only: never a code that was given to
// a page that is gone.
func TestLossRacesAnswer(t *testing.T) {
	m, err := abi.ReadManifest([]byte(`{"protocol_version":"0.1.0","connector_id":"racer","version":"1","display_name":"Racer",
		"runtime_requirements":{"bindings":{"browser":{}}},"capabilities":{"human_interaction":["otp","manual_action"]},
		"streams":[{"name":"items","semantics":"append_only","primary_key":"id","schema":{"type":"object","properties":{"id":{}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	won := map[string]int{}
	for n := range races() {
		won[race(t, m, n)]++
		if t.Failed() {
			t.Fatalf("in race %d", n)
		}
	}
	t.Logf("%v", won)
	if won["answer"] == 0 || won["loss"] == 0 {
		t.Errorf("only one order was seen: %v", won)
	}
}

// race is one run with one question; it returns who was first.
func race(t *testing.T, m *abi.Manifest, n int) string {
	kind, code := abi.KindOTP, fmt.Sprintf("code-%08d", n)
	if n%2 == 1 {
		kind = abi.KindManualAction
	}
	log, guest, page, desk := &memory{}, newRacer(kind), &racePage{asked: make(chan struct{})},
		&raceDesk{make(chan host.Answer), make(chan (<-chan struct{}), 1), make(chan error, 2)}
	plan, err := run.Prepare(context.Background(), log, run.Input{
		Connector:  store.Connector{ID: "racer", Name: "racer"},
		Connection: store.Connection{ID: "racer", Enabled: true, Approved: store.Approved{Browser: true}},
		Manifest:   m, Transport: "abi", UsesABI: true, Interactive: true, Trigger: "manual",
		Kinds: kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
	})
	if err != nil {
		t.Fatal(err)
	}
	current := run.New(plan, run.Deps{
		Store: log, Owner: desk, Bindings: []binding.Binding{page}, HostID: "host", BootEpoch: "boot",
		Launch: func(context.Context, run.Launch) (run.Guest, binding.Binding, error) { return guest, nil, nil },
	})
	var both sync.WaitGroup
	start := make(chan struct{})
	both.Go(func() {
		<-start
		a := host.Answer{InteractionID: "q", Status: abi.AnswerSuccess,
			Data: map[string]json.RawMessage{"code": json.RawMessage(`"` + code + `"`)}}
		closed := <-desk.asked
		select {
		case desk.answers <- a:
		case <-closed: // it was before anybody said a word
			desk.settled <- run.ErrTooLate
		}
	})
	both.Go(func() {
		<-start
		defer close(guest.until)
		page.back.Lost("sf_1", binding.Probe{Code: "browser_surface_page_stale", Detail: "the page crashed"})
	})
	go func() {
		<-page.asked
		close(start)
	}()
	result, err := current.Do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	both.Wait()
	if result.Status != abi.Succeeded {
		t.Errorf("the run ended as %s %v", result.Status, result.Failure)
	}
	if page.closes != 1 || !log.terminated {
		t.Errorf("closed %d times, terminal event %v", page.closes, log.terminated)
	}
	return judge(t, guest, log, <-desk.settled, code)
}

// judge checks that everybody saw the same winner.
func judge(t *testing.T, guest *racer, log *memory, settled error, code string) string {
	events := strings.Join(log.types, " ")
	lost := strings.Contains(events, "run.browser_surface_lost")
	if strings.Contains(log.data.String(), code) {
		t.Error("the code is in an event")
	}
	if !lost {
		if settled != nil || guest.response.Status != abi.AnswerSuccess ||
			!strings.Contains(string(guest.response.Data["code"]), code) {
			t.Errorf("the answer won: settled %v, guest %+v", settled, guest.response)
		}
		if strings.Contains(events, "run.assistance_cancelled") || !strings.Contains(events, "run.browser_surface_failed") {
			t.Errorf("the answer won: %s", events)
		}
		return "answer"
	}
	if settled != run.ErrTooLate || guest.response.Status != abi.AnswerCancelled || guest.response.Data != nil {
		t.Errorf("the loss won: settled %v, guest %+v", settled, guest.response)
	}
	want := "run.browser_surface_lost interrupt.resolved run.interaction_completed run.assistance_cancelled node.resumed"
	if !strings.Contains(events, want) || strings.Contains(events, "run.browser_surface_failed") {
		t.Errorf("the loss won: %s", events)
	}
	return "loss"
}

// A racer is a guest that asks one question and is done.
type racer struct {
	kind     string
	until    chan struct{} // it says DONE when that is closed
	calls    chan sandbox.Inbound
	replies  chan []byte
	killed   chan struct{}
	once     sync.Once
	response abi.Response
	done     string // "" succeeds
}

func newRacer(kind string) *racer {
	return &racer{kind: kind, until: make(chan struct{}), calls: make(chan sandbox.Inbound), replies: make(chan []byte, 1),
		killed: make(chan struct{})}
}

func (g *racer) Go() error {
	go func() {
		defer close(g.calls)
		for i, c := range []struct {
			call    abi.Call
			payload string
		}{
			{abi.CallStart, ""}, {abi.CallInteract, `{"request_id":"q","kind":"` + g.kind + `","message":"Please"}`},
			{abi.CallDone, cmp.Or(g.done, `{"status":"succeeded","records_emitted":0}`)},
		} {
			select {
			case g.calls <- sandbox.Inbound{ID: uint32(i + 1), Call: c.call, Payload: []byte(c.payload)}:
			case <-g.killed:
				return
			}
			select {
			case reply := <-g.replies:
				if c.call == abi.CallInteract {
					_ = json.Unmarshal(reply, &g.response) // what is missing fails the test
					<-g.until
				}
			case <-g.killed:
				return
			}
		}
	}()
	return nil
}

func (g *racer) Calls() <-chan sandbox.Inbound { return g.calls }
func (g *racer) Reply(_ uint32, _ abi.Errno, payload []byte) error {
	g.replies <- append([]byte(nil), payload...)
	return nil
}
func (g *racer) Credit(int, int) error        { return nil }
func (g *racer) Kill()                        { g.once.Do(func() { close(g.killed) }) }
func (g *racer) Usage() sandbox.Usage         { return sandbox.Usage{} }
func (g *racer) Exit() sandbox.Exit           { return sandbox.Exit{Kind: sandbox.ExitExited} }
func (g *racer) Isolation() sandbox.Isolation { return sandbox.Isolation{} }

// A racePage is a browser with a surface that somebody else loses.
type racePage struct {
	back   binding.Run
	asked  chan struct{}
	closes int
}

var surface = abi.Attachment{Kind: "browser_surface", Ref: "sf_1", Status: "available"}

func (p *racePage) Begin(_ string, back binding.Run) { p.back = back }
func (p *racePage) Handle(context.Context, abi.Call, []byte) ([]byte, abi.Errno) {
	return nil, abi.ENOTSUP
}
func (p *racePage) Takes(call abi.Call, _ []byte) bool                       { return call == abi.CallBrowser }
func (p *racePage) Seal(string, string, string, [][]byte, []abi.Destination) {}
func (p *racePage) Page(context.Context) (string, string)                    { return "", "" }
func (p *racePage) Surface() abi.Attachment                                  { return surface }
func (p *racePage) Probe(context.Context) abi.Attachment                     { return surface }
func (p *racePage) Registered() bool                                         { return true }
func (p *racePage) Asked(string, string, time.Time)                          { close(p.asked) }
func (p *racePage) Answered(string)                                          {}
func (p *racePage) Assisted(string, *abi.AssistanceMessage)                  {}
func (p *racePage) Paused(bool)                                              {}
func (p *racePage) Spent() bool                                              { return false }
func (p *racePage) Close(context.Context) error                              { p.closes++; return nil }

// A raceDesk answers when it is told to.
type raceDesk struct {
	answers chan host.Answer
	asked   chan (<-chan struct{}) // capacity 1: when the question is closed
	settled chan error             // capacity 2
}

func (d *raceDesk) Settled(_ store.RunID, _ string, err error) { d.settled <- err }

func (d *raceDesk) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	d.asked <- ctx.Done()
	select {
	case a := <-d.answers:
		return a, nil
	case <-ctx.Done():
		return host.Answer{InteractionID: q.InteractionID}, ctx.Err()
	}
}

// A memory is a store that only counts what a run commits.
type memory struct {
	store.Store
	types      []string
	data       strings.Builder
	terminated bool
}

func (m *memory) States(context.Context, store.ConnectionID, store.GrantID) ([]store.State, error) {
	return nil, nil
}
func (m *memory) Gaps(context.Context, store.ConnectionID, store.GrantID, string) ([]store.DetailGap, error) {
	return nil, nil
}
func (m *memory) Acquire(_ context.Context, r store.Run, _, _ string, ttl time.Duration,
	_ ...store.Write) (store.Lease, error) {
	return store.Lease{ConnectionID: r.ConnectionID, RunID: r.ID, ExpiresAt: time.Now().Add(ttl)}, nil
}
func (m *memory) Renew(_ context.Context, l store.Lease, _ time.Duration) (store.Lease, error) {
	return l, nil
}

func (m *memory) Submit(_ context.Context, c *store.Commit) (*store.Receipt, error) {
	for _, e := range c.Events {
		m.types = append(m.types, e.Type)
		m.data.Write(e.Data)
	}
	m.terminated = m.terminated || c.End
	receipt, settle := store.NewReceipt()
	settle(store.Ack{}, nil)
	return receipt, nil
}
