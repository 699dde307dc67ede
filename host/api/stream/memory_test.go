package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

// memory is a log in memory: the part of a store that a hub reads.
type memory struct {
	mu       sync.Mutex
	runs     map[store.RunID]store.Run
	events   map[store.RunID][]store.Event
	watchers map[chan struct{}]store.RunID
	silent   bool // commits wake nobody
	reads    int  // calls of Events and RunHead
	largest  int  // events asked for at once
	broken   func(from uint64) error
}

func newMemory(runs ...store.RunID) *memory {
	m := &memory{runs: map[store.RunID]store.Run{}, events: map[store.RunID][]store.Event{},
		watchers: map[chan struct{}]store.RunID{}}
	for _, id := range runs {
		m.runs[id] = store.Run{ID: id, ConnectionID: "mailbox", Status: "active", StartedAt: time.Now()}
	}
	return m
}

type ev struct{ typ, data string }

// commit appends events in one step.
func (m *memory) commit(id store.RunID, evs ...ev) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var first store.EventID
	for i, e := range evs {
		n := uint64(len(m.events[id]))
		out := store.Event{ID: store.EventID(fmt.Sprintf("evt_%016x", n)), Type: e.typ, Sequence: n, OccurredAt: time.Now(),
			RunID: id, ConnectionID: "mailbox", NodeID: "collect", Data: json.RawMessage(e.data), CausationID: first}
		if e.data == "" {
			out.Data = json.RawMessage(`{"nodeId":"collect"}`)
		}
		if i == 0 {
			first = out.ID
		}
		m.events[id] = append(m.events[id], out)
		if terminal(e.typ) {
			r := m.runs[id]
			r.Status = "succeeded"
			m.runs[id] = r
		}
	}
	for ch, run := range m.watchers {
		if (run == id || run == "") && !m.silent {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

func terminal(typ string) bool {
	return typ == "run.completed" || typ == "run.failed" || typ == "run.cancelled"
}

func (m *memory) prune(id store.RunID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[id]
	r.Pruned = true
	m.runs[id] = r
}

func (m *memory) Run(ctx context.Context, id store.RunID) (store.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.runs[id]
	if !ok {
		return r, store.ErrNotFound
	}
	return r, ctx.Err()
}

func (m *memory) RunHead(ctx context.Context, id store.RunID) (store.RunHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	es := m.events[id]
	return store.RunHead{Next: uint64(len(es)), Ended: len(es) > 0 && terminal(es[len(es)-1].Type)}, ctx.Err()
}

func (m *memory) Events(ctx context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	m.largest = max(m.largest, limit)
	if m.broken != nil {
		if err := m.broken(from); err != nil {
			return nil, err
		}
	}
	es := m.events[id]
	if m.runs[id].Pruned || from >= uint64(len(es)) {
		return nil, ctx.Err()
	}
	es = es[from:]
	return append([]store.Event(nil), es[:min(len(es), limit)]...), ctx.Err()
}

func (m *memory) EventsBefore(ctx context.Context, id store.RunID, before uint64, limit int) ([]store.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	es := m.events[id]
	if before > 0 {
		es = es[:min(before, uint64(len(es)))]
	}
	return append([]store.Event(nil), es[max(0, len(es)-limit):]...), ctx.Err()
}

func (m *memory) Watch(id store.RunID) (<-chan struct{}, func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch := make(chan struct{}, 1)
	m.watchers[ch] = id
	return ch, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, ch)
	}
}
