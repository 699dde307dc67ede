package assistant

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
)

// maxAsks bounds the waiting calls of one assistant.
const maxAsks = 16

// asks holds the calls that wait for the owner's approval at this host. No call outlives its host.
type asks struct {
	mu      sync.Mutex // guards the fields below
	waiting map[string][]*ask
	closed  bool
}

type ask struct {
	call host.AssistantCall
	said chan bool // capacity 1
}

func newAsks() *asks { return &asks{waiting: map[string][]*ask{}} }

// wait waits until the owner decides a call or the time is up. It returns whether the call is approved and, if not, a
// code for the reason.
func (a *asks) wait(ctx context.Context, id string, call host.AssistantCall,
	most time.Duration) (yes bool, code string) {
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

// of returns the waiting calls of an assistant, newest first.
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

// decide approves or denies a call. It returns false if no such call waits or it was already decided.
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
		default: // already decided
		}
	}
	return false
}

// drop denies all waiting calls of an assistant.
func (a *asks) drop(id string) {
	for _, c := range a.of(id) {
		a.decide(id, c.CallID, false)
	}
}

// close denies all waiting calls and refuses later ones.
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
