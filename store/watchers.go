package store

import "sync"

// Watchers delivers wake-ups, for drivers, over coalescing channels of capacity 1, so that
// a slow watcher costs nothing and misses nothing. The zero value is ready to use.
type Watchers struct {
	mu   sync.Mutex // guards runs and next
	runs map[RunID]map[uint64]chan struct{}
	next uint64
}

// Watch implements Timelines.Watch.
func (w *Watchers) Watch(id RunID) (wake <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = make(map[RunID]map[uint64]chan struct{})
	}
	if w.runs[id] == nil {
		w.runs[id] = make(map[uint64]chan struct{})
	}
	n, ch := w.next, make(chan struct{}, 1)
	w.next++
	w.runs[id][n] = ch
	return ch, func() { w.remove(id, n) }
}

func (w *Watchers) remove(id RunID, n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs[id], n)
	if len(w.runs[id]) == 0 {
		delete(w.runs, id)
	}
}

// Wake wakes the watchers of these runs, and those of all runs.
func (w *Watchers) Wake(ids map[RunID]bool) {
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

// WakeAll wakes all watchers, when wake-ups may have been missed.
func (w *Watchers) WakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.runs {
		poke(all)
	}
}

func poke(all map[uint64]chan struct{}) {
	for _, ch := range all {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
