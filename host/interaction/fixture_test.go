package interaction_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// A memory is what the broker reads of a store.
type memory struct {
	mu      sync.Mutex
	runs    map[store.RunID]store.Run
	pending map[store.RunID][]store.Interaction
	events  map[store.RunID][]store.Event
	wakes   map[store.RunID][]chan struct{}
}

func newMemory(active ...store.RunID) *memory {
	m := &memory{runs: map[store.RunID]store.Run{}, pending: map[store.RunID][]store.Interaction{},
		events: map[store.RunID][]store.Event{}, wakes: map[store.RunID][]chan struct{}{}}
	for _, id := range active {
		m.runs[id] = store.Run{ID: id, Status: "active"}
	}
	return m
}

func (m *memory) Run(_ context.Context, id store.RunID) (store.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.runs[id]
	if !ok {
		return r, store.ErrNotFound
	}
	return r, nil
}

func (m *memory) Pending(_ context.Context, id store.RunID) ([]store.Interaction, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.pending[id]), nil
}

func (m *memory) Events(_ context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.events[id]
	if from >= uint64(len(all)) {
		return nil, nil
	}
	return slices.Clone(all[from:min(uint64(len(all)), from+uint64(limit))]), nil
}

func (m *memory) Watch(id store.RunID) (<-chan struct{}, func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{}, 1)
	m.wakes[id] = append(m.wakes[id], c)
	return c, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.wakes[id] = slices.DeleteFunc(m.wakes[id], func(w chan struct{}) bool { return w == c })
	}
}

// commit is what a run's commits do to the pending record.
func (m *memory) commit(id store.RunID, open ...store.Interaction) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending[id] = open
	for _, w := range m.wakes[id] {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (m *memory) append(id store.RunID, events ...store.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		e.Sequence = uint64(len(m.events[id]))
		m.events[id] = append(m.events[id], e)
	}
}

func (m *memory) end(id store.RunID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[id]
	r.Status = "failed"
	m.runs[id] = r
}

// otp is a question with one secret field, which the connector calls by a name
// that is not shown.
func otp(id store.RunID, interaction string) run.Question {
	return run.Question{RunID: string(id), ConnectionID: "mailbox", InteractionID: interaction, Kind: "otp",
		RawMessage: "Code?",
		RawSchema:  json.RawMessage(`{"type":"object","required":["the code"],"properties":{"the code":{"type":"string"}}}`),
		Fields:     []run.Field{{Name: "the code", Shown: "field_1", Type: "string", Secret: true, Required: true}}}
}

// An asker is the part of a run that asks: what closes its question first is how
// the question ends.
type asker struct {
	t      *testing.T
	broker *interaction.Broker
	st     *memory
	q      run.Question

	cancel context.CancelFunc
	got    chan host.Answer // of Ask; closed without one
}

// ask commits the question and asks it, as a run does.
func ask(t *testing.T, d *interaction.Broker, st *memory, q run.Question) *asker {
	ctx, cancel := context.WithCancel(t.Context())
	a := &asker{t: t, broker: d, st: st, q: q, cancel: cancel, got: make(chan host.Answer, 1)}
	st.commit(store.RunID(q.RunID),
		store.Interaction{ID: q.InteractionID, RunID: store.RunID(q.RunID), Message: q.RawMessage})
	go func() {
		defer close(a.got)
		if got, err := d.Ask(ctx, q); err == nil {
			a.got <- got
		} else if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	return a
}

// take closes the question with the answer that came.
func (a *asker) take() host.Answer {
	got, ok := <-a.got
	if !ok {
		a.t.Error("asked in vain")
		return got
	}
	a.st.commit(store.RunID(a.q.RunID))
	a.broker.Settled(got.RunID, got.InteractionID, nil)
	return got
}

// close ends the question otherwise, as a time-out or a cancel does.
func (a *asker) close() {
	a.cancel()
	a.st.commit(store.RunID(a.q.RunID))
	if late, ok := <-a.got; ok {
		a.broker.Settled(late.RunID, late.InteractionID, run.ErrTooLate)
	}
}

func code(err error) string {
	var r *run.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func detail(err error, name string) any {
	var r *run.Refusal
	if !errors.As(err, &r) {
		return nil
	}
	return r.Details[name]
}

func values(pairs ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return maps.Clone(out)
}
