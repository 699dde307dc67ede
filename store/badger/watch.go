package badger

import (
	"sync"

	"github.com/sluicehost/sluice/store"
)

// watchers hands out wake-ups (DESIGN.md invariant 7): channels of capacity 1,
// coalesced, so that a slow watcher costs nothing and misses nothing.
type watchers struct {
	mu   sync.Mutex // guards runs and next
	runs map[store.RunID]map[uint64]chan struct{}
	next uint64
}

// Watch implements store.Store.
func (s *Store) Watch(id store.RunID) (<-chan struct{}, func()) {
	return s.watchers.add(id)
}

func (w *watchers) add(id store.RunID) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = make(map[store.RunID]map[uint64]chan struct{})
	}
	if w.runs[id] == nil {
		w.runs[id] = make(map[uint64]chan struct{})
	}
	n, ch := w.next, make(chan struct{}, 1)
	w.next++
	w.runs[id][n] = ch
	return ch, func() { w.remove(id, n) }
}

func (w *watchers) remove(id store.RunID, n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs[id], n)
	if len(w.runs[id]) == 0 {
		delete(w.runs, id)
	}
}

func (w *watchers) wake(ids map[store.RunID]bool) {
	if len(ids) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range ids {
		poke(w.runs[id])
	}
	poke(w.runs[""])
}

func poke(all map[uint64]chan struct{}) {
	for _, ch := range all {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
