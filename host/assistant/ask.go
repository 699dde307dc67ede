package assistant

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
)

// maxAsks bounds how many calls of one assistant wait.
const maxAsks = 16

// asks are the calls that wait until the owner says yes. They are in memory: without a host
// there is nobody who waits.
type asks struct {
	mu      sync.Mutex // guards all below
	waiting map[string][]*ask
	closed  bool
}

type ask struct {
	call host.AssistantCall
	said chan bool // of capacity 1
}

func newAsks() *asks { return &asks{waiting: map[string][]*ask{}} }

// wait returns whether the owner said yes to a call, and else why not.
func (a *asks) wait(ctx context.Context, id string, call host.AssistantCall, most time.Duration) (yes bool, code string) {
	call.Outcome = "waiting"
	w := &ask{call, make(chan bool, 1)}
	a.mu.Lock()
	if a.closed || len(a.waiting[id]) >= maxAsks {
		a.mu.Unlock()
		return false, "too_many_wait"
	}
	a.waiting[id] = append(a.waiting[id], w)
	a.mu.Unlock()
	defer a.forget(id, w)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case yes := <-w.said:
		if !yes {
			return false, "denied"
		}
		return true, ""
	case <-timer.C:
		return false, "not_approved"
	case <-ctx.Done():
		return false, "not_approved"
	}
}

func (a *asks) forget(id string, w *ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[id] = slices.DeleteFunc(a.waiting[id], func(o *ask) bool { return o == w })
	if len(a.waiting[id]) == 0 {
		delete(a.waiting, id)
	}
}

// of are the calls of an assistant that wait, newest first.
func (a *asks) of(id string) []host.AssistantCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []host.AssistantCall
	for _, w := range slices.Backward(a.waiting[id]) {
		out = append(out, w.call)
	}
	return out
}

func (a *asks) waits(id, call string) bool {
	return slices.ContainsFunc(a.of(id), func(c host.AssistantCall) bool { return c.CallID == call })
}

// decide says yes or no, once.
func (a *asks) decide(id, call string, yes bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.waiting[id] {
		if w.call.CallID != call {
			continue
		}
		select {
		case w.said <- yes:
			return true
		default: // it was decided
		}
	}
	return false
}

// drop says no to all calls of an assistant.
func (a *asks) drop(id string) {
	for _, c := range a.of(id) {
		a.decide(id, c.CallID, false)
	}
}

// close says no to all, and to all that come.
func (a *asks) close() {
	a.mu.Lock()
	a.closed = true
	var ids []string
	for id := range a.waiting {
		ids = append(ids, id)
	}
	a.mu.Unlock()
	for _, id := range ids {
		a.drop(id)
	}
}
