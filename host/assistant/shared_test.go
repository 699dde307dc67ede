package assistant_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/assistant"
	"github.com/sluicehost/sluice/store"
)

// Hosts that share a store have the same assistants: one that was made at a host is known at the others, its calls are
// counted together, and one that was revoked at a host is refused by all, for good.
func TestShared(t *testing.T) {
	w := newWorld(t)
	other := worldOver(t, w.store)
	a := w.add("notes")
	if name, err := other.gateway.AuthenticateAssistant(t.Context(), a.Token); err != nil || name != "notes" {
		t.Fatalf("at another host it is %q: %v", name, err)
	}
	here, there := w.connect("notes"), other.connect("notes")
	const each = 3
	for range each {
		for at, s := range map[*world]func() (string, bool){
			w:     func() (string, bool) { return w.call(here, "data", object{}) },
			other: func() (string, bool) { return other.call(there, "data", object{}) },
		} {
			if text, ok := s(); !ok {
				t.Fatal(text)
			}
			_, err := at.gateway.Assistants(t.Context()) // which has it written down
			at.must(err)
		}
	}
	for _, at := range []*world{w, other} {
		shown, err := at.gateway.Assistant(t.Context(), "notes")
		at.must(err)
		calls, err := at.gateway.AssistantCalls(t.Context(), "notes", 0, 100)
		at.must(err)
		if shown.Calls != 2*each || len(calls) != 2*each {
			t.Errorf("%d calls are counted, and %d are listed", shown.Calls, len(calls))
		}
	}
	_, err := w.gateway.RevokeAssistant(t.Context(), "notes")
	w.must(err)
	if text, ok := other.call(there, "data", object{}); ok {
		t.Errorf("a call of one that was revoked at another host: %s", text)
	}
	for _, at := range []*world{other, w, other} {
		_, err := at.gateway.Assistants(t.Context())
		at.must(err)
		if _, err := at.gateway.AuthenticateAssistant(t.Context(), a.Token); !errors.Is(err, access.ErrKeyRevoked) {
			t.Errorf("the token of one that was revoked: %v", err)
		}
	}
	var made sync.WaitGroup
	results := make(chan error, 2)
	for _, at := range []*world{w, other} {
		made.Go(func() {
			_, err := at.gateway.AddAssistant(t.Context(), host.NewAssistant{Name: "notes", AssistantTerms: a.AssistantTerms})
			results <- err
		})
	}
	made.Wait()
	first, second := <-results, <-results
	var no *host.Refusal
	if (first == nil) == (second == nil) || !errors.As(errors.Join(first, second), &no) || no.Code != "conflict" {
		t.Errorf("one name was given at two hosts: %v, %v", first, second)
	}
	if _, err := other.gateway.AuthenticateAssistant(t.Context(), a.Token); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("an earlier token of the name: %v", err)
	}
}

// peer is one of two hosts that share a store.
type peer struct {
	self  string
	other *world // the other one
	gone  bool   // that is
}

func (p *peer) Self() string { return p.self }

func (p *peer) Alive(_ context.Context, epoch string) (bool, error) {
	return epoch == p.self || !p.gone, nil
}

func (p *peer) Decide(ctx context.Context, _ string, q assistant.Decision) error {
	return p.other.gateway.DecideCall(ctx, q.Name, q.Call, q.Yes)
}

// A call that waits at one host is listed at every other one, and decided there; once it is decided, or its host is
// gone, it waits nowhere.
func TestDecidedAtAnotherHost(t *testing.T) {
	w := newWorld(t)
	toB, toA := &peer{self: "boot_a"}, &peer{self: "boot_b"}
	a, b := worldOf(t, w.store, toB), worldOf(t, w.store, toA)
	toB.other, toA.other = b, a
	a.add("notes", func(q *host.NewAssistant) { q.Ask = true })
	s := a.connect("notes")
	type result struct {
		text string
		ok   bool
	}
	call := func() <-chan result {
		out := make(chan result, 1)
		go func() {
			text, ok := a.call(s, "get_record", object{"connection": "mail", "stream": "messages", "key": "a"})
			out <- result{text, ok}
		}()
		return out
	}
	waiting := func(at *world) string {
		t.Helper()
		calls, err := at.gateway.AssistantCalls(t.Context(), "notes", 0, 1)
		at.must(err)
		one, err := at.gateway.Assistant(t.Context(), "notes")
		at.must(err)
		all, err := at.gateway.Assistants(t.Context())
		at.must(err)
		if len(calls) == 0 || calls[0].Outcome != "waiting" || one.Waiting != 1 || all[0].Waiting != 1 {
			return ""
		}
		return calls[0].CallID
	}
	for _, yes := range []bool{true, false} {
		out, id := call(), ""
		b.eventually("the call waits at another host", func() bool { id = waiting(b); return id != "" })
		if here := waiting(a); here != id {
			t.Errorf("at its host %q waits", here)
		}
		b.must(b.gateway.DecideCall(t.Context(), "notes", id, yes))
		if r := <-out; r.ok != yes || strings.Contains(r.text, "quarterly") != yes {
			t.Errorf("yes is %t: %s", yes, r.text)
		}
		b.eventually("no call waits at another host", func() bool { return waiting(b) == "" })
		for _, at := range []*world{a, b} {
			if err := at.gateway.DecideCall(t.Context(), "notes", id, true); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a call that is over was decided: %v", err)
			}
		}
	}
	out, id := call(), ""
	b.eventually("the call waits at another host", func() bool { id = waiting(b); return id != "" })
	toA.gone = true
	if waiting(b) != "" {
		t.Error("the call of a host that is gone waits")
	}
	if err := b.gateway.DecideCall(t.Context(), "notes", id, true); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the call of a host that is gone was decided: %v", err)
	}
	a.must(a.gateway.DecideCall(t.Context(), "notes", id, false))
	<-out
}

// An early store has a clock that is ahead of this machine's.
type early struct{ store.Store }

func (early) Now() time.Time { return time.Now().Add(10 * time.Minute) }

// An assistant expires by the clock of the store, at whichever host it is.
func TestExpiresByStoreClock(t *testing.T) {
	w := newWorld(t)
	g, err := assistant.Open(t.Context(), assistant.Options{Store: early{w.store}, Dir: t.TempDir(), Runs: w})
	if err != nil {
		t.Fatal(err)
	}
	defer g.CloseAssistants()
	for in, over := range map[time.Duration]bool{5 * time.Minute: true, time.Hour: false} {
		until := time.Now().Add(in)
		_, err := g.AddAssistant(t.Context(), host.NewAssistant{Name: "notes", AssistantTerms: host.AssistantTerms{
			ExpiresAt: &until, Connections: []host.AssistantGrant{{ConnectionID: "mail"}}}})
		if (err != nil) != over {
			t.Errorf("one that expires in %s of this machine, and %s later in the store: %v", in, 10*time.Minute, err)
		}
	}
}
