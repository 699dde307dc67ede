package webhook_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A memory is a store of runs, events and documents without a disk.
type memory struct {
	store.Store

	mu      sync.Mutex // guards what follows
	docs    map[string]store.Document
	runs    map[store.RunID]store.Run
	events  map[store.RunID][]store.Event
	wakes   []chan struct{}
	broken  error // of every Write
	counter int
	secrets
}

// secrets are kept in the clear.
type secrets map[string][]byte

func (s secrets) Set(id string, secret []byte) error { s[id] = slices.Clone(secret); return nil }
func (s secrets) Remove(id string) error             { delete(s, id); return nil }
func (s secrets) IDs() ([]string, error)             { return slices.Collect(maps.Keys(s)), nil }

func (s secrets) Get(id string) ([]byte, error) {
	if s[id] == nil {
		return nil, errors.New("there is no such secret")
	}
	return s[id], nil
}

func newMemory() *memory {
	return &memory{docs: map[string]store.Document{}, runs: map[store.RunID]store.Run{},
		events: map[store.RunID][]store.Event{}, secrets: secrets{}}
}

func (m *memory) key(k store.Kind, id string) string { return string(k) + " " + id }

func (m *memory) Write(_ context.Context, writes ...store.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return m.broken
	}
	for _, w := range writes {
		if d := m.docs[m.key(w.Kind, w.ID)]; w.If != nil && d.Revision != *w.If {
			return &store.ConflictError{Kind: w.Kind, ID: w.ID, Revision: d.Revision}
		}
	}
	for _, w := range writes {
		k := m.key(w.Kind, w.ID)
		if w.Data == nil {
			delete(m.docs, k)
			continue
		}
		m.docs[k] = store.Document{Kind: w.Kind, ID: w.ID, Revision: m.docs[k].Revision + 1, Data: slices.Clone(w.Data)}
	}
	return nil
}

func (m *memory) Document(_ context.Context, kind store.Kind, id string) (store.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.docs[m.key(kind, id)]
	if !ok {
		return d, store.ErrNotFound
	}
	return d, nil
}

func (m *memory) Documents(_ context.Context, q store.DocumentQuery) ([]store.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Document
	for _, d := range m.docs {
		if d.Kind == q.Kind && strings.HasPrefix(d.ID, q.Prefix) && d.ID > q.After {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b store.Document) int { return cmp.Compare(a.ID, b.ID) })
	return out[:min(len(out), q.Limit)], nil
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

func (m *memory) Runs(_ context.Context, _ store.ConnectionID, before store.RunID, limit int) ([]store.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Run
	for _, r := range m.runs {
		if before == "" || r.ID < before {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b store.Run) int { return cmp.Compare(b.ID, a.ID) })
	return out[:min(len(out), limit)], nil
}

func (m *memory) Leases(context.Context) ([]store.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []store.Lease
	for _, r := range m.runs {
		if r.Status == "active" {
			out = append(out, store.Lease{RunID: r.ID})
		}
	}
	return out, nil
}

func (m *memory) Events(_ context.Context, id store.RunID, from uint64, limit int) ([]store.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.events[id]
	all = all[min(int(from), len(all)):]
	return slices.Clone(all[:min(len(all), limit)]), nil
}

func (m *memory) Watch(store.RunID) (<-chan struct{}, func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{}, 1)
	m.wakes = append(m.wakes, c)
	return c, func() {}
}

// begin starts a run; its id sorts by time.
func (m *memory) begin(tags ...string) store.RunID {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counter++
	id := store.RunID(fmt.Sprintf("run_%013d%06d", time.Now().UnixMilli(), m.counter))
	m.runs[id] = store.Run{ID: id, Status: "active", StartedAt: time.Now(), Request: store.Request{Tags: tags}}
	return id
}

// say appends events of these types to a run's log; an end ends it.
func (m *memory) say(id store.RunID, types ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range types {
		typ, action, _ := strings.Cut(t, " ")
		data, _ := json.Marshal(map[string]string{"owner_action": action, "outcome": action})
		n := uint64(len(m.events[id]))
		m.events[id] = append(m.events[id], store.Event{
			ID: store.EventID(fmt.Sprintf("evt_%016x", n)), Type: typ, Sequence: n, RunID: id, Data: data,
			OccurredAt: time.Now(), RecordedAt: time.Now(),
		})
		if typ == "run.completed" || typ == "run.failed" {
			r := m.runs[id]
			r.Status = "succeeded"
			m.runs[id] = r
		}
	}
	for _, c := range m.wakes {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// count is how many documents of a kind there are.
func (m *memory) count(t *testing.T, kind store.Kind) int {
	t.Helper()
	docs, err := m.Documents(t.Context(), store.DocumentQuery{Kind: kind, Limit: 100000})
	if err != nil {
		t.Fatal(err)
	}
	return len(docs)
}
