package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Limits of the log of calls.
const (
	keptCalls   = 10_000 // of one assistant, in addition to the audit log
	keptFor     = 90 * 24 * time.Hour
	unwritten   = 1000 // calls that may be waiting to be written
	batchCalls  = 200
	againAfter  = time.Second
	writeWithin = 30 * time.Second
)

// errNotWritten reports that calls cannot be logged, so none are served.
var errNotWritten = errors.New("calls cannot be written down at present")

// A callLog writes calls, in order, to the audit log and to the store. Answers do not wait for that, but while writing
// fails, no call is served.
type callLog struct {
	gateway *Gateway
	wake    chan struct{} // capacity 1
	quit    chan struct{} // closed by close
	done    chan struct{}

	mu      sync.Mutex // guards the fields below
	calls   []Call
	written chan struct{} // closed and replaced after each write
	failed  error         // error of the last write
	closed  bool
}

func newCallLog(d *Gateway) *callLog {
	b := &callLog{gateway: d, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		written: make(chan struct{})}
	go b.loop()
	return b
}

// ready returns an error if calls cannot be logged. It waits while too many are still to be written.
func (b *callLog) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	for {
		b.mu.Lock()
		left, written, no := len(b.calls), b.written, b.failed != nil || b.closed
		b.mu.Unlock()
		switch {
		case no:
			return errNotWritten
		case left < unwritten:
			return nil
		}
		select {
		case <-written:
		case <-ctx.Done():
			return errNotWritten
		}
	}
}

// add queues a finished call.
func (b *callLog) add(c Call) {
	b.mu.Lock()
	b.calls = append(b.calls, c)
	b.mu.Unlock()
	b.nudge()
}

func (b *callLog) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// flush waits until all queued calls are written.
func (b *callLog) flush(ctx context.Context) error {
	for {
		b.mu.Lock()
		left, written, err := len(b.calls), b.written, b.failed
		b.mu.Unlock()
		if left == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("write calls of assistants down: %w", err)
		}
		select {
		case <-written:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close writes the queued calls and stops. It is idempotent.
func (b *callLog) close() {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if !closed {
		close(b.quit)
	}
	<-b.done
}

func (b *callLog) loop() {
	defer close(b.done)
	for ending := false; !ending; {
		select {
		case <-b.wake:
		case <-b.quit:
			ending = true
		}
		for b.batch() {
			switch {
			case b.broken() == nil:
				continue
			case ending: // writing fails and there is no time to try again
				return
			}
			select {
			case <-time.After(againAfter):
			case <-b.quit:
				ending = true
			}
		}
	}
}

func (b *callLog) broken() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// batch writes the oldest calls and reports whether there are more.
func (b *callLog) batch() (more bool) {
	b.mu.Lock()
	calls := b.calls[:min(len(b.calls), batchCalls)]
	b.mu.Unlock()
	if len(calls) == 0 {
		return false
	}
	err := b.write(calls)
	if err != nil {
		b.gateway.o.Log.Error("assistant_calls_not_written", "error", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed = err; err == nil {
		b.calls = append([]Call(nil), b.calls[len(calls):]...)
	}
	close(b.written)
	b.written = make(chan struct{})
	return len(b.calls) > 0
}

func (b *callLog) write(calls []Call) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if err := b.gateway.keep(ctx, calls); err != nil {
		return err
	}
	if b.gateway.o.Called == nil {
		return nil
	}
	return b.gateway.o.Called(calls)
}

func callKey(id string, n uint64) string { return fmt.Sprintf("%s/%016d", id, n) }

// keep stores calls and the counters of their assistants, and deletes the oldest calls. A call that already has a
// number was stored before.
func (d *Gateway) keep(ctx context.Context, calls []Call) error {
	d.saving.Lock()
	defer d.saving.Unlock()
	for {
		err := d.keepOnce(ctx, calls)
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) { // otherwise another host has kept a call, or revoked an assistant
			return err
		}
	}
}

func (d *Gateway) keepOnce(ctx context.Context, calls []Call) error {
	now := d.o.Now()
	var writes []store.Write
	by := map[string]*definition{} // ids of assistants
	revisions := map[string]uint64{}
	for _, c := range calls {
		def := by[c.ID]
		if c.Number != 0 {
			continue
		}
		if def == nil {
			stored, revision, err := d.stored(ctx, c.Assistant)
			if err != nil {
				return err
			}
			if stored.ID != c.ID {
				continue // the assistant is over, and another one has its name
			}
			def = &stored
			by[c.ID], revisions[c.ID] = def, revision
		}
		def.Calls++
		def.UsedAt = new(c.At)
		w, err := callWrites(def, c.AssistantCall, now)
		if err != nil {
			return err
		}
		writes = append(writes, w...)
	}
	for id, def := range by {
		w, err := writeOf(*def, revisions[id])
		if err != nil {
			return err
		}
		writes = append(writes, w)
	}
	if len(writes) == 0 {
		return nil
	}
	if err := d.o.Store.Write(ctx, writes...); err != nil {
		return fmt.Errorf("store calls: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, def := range by {
		if s := d.endpoints[def.Name]; s != nil && s.def.ID == id {
			s.def.Calls, s.def.UsedAt = def.Calls, def.UsedAt
		}
	}
	for i := range calls { // so that a retry after the audit log failed stores nothing twice
		if def := by[calls[i].ID]; def != nil && calls[i].Number == 0 {
			calls[i].Number = def.Calls
		}
	}
	return nil
}

func (d *Gateway) definition(s *endpoint) definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.def
}

// callWrites returns the writes that store a call and delete the one that exceeds keptCalls.
func callWrites(def *definition, c host.AssistantCall, now time.Time) ([]store.Write, error) {
	c.Number = def.Calls
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	out := []store.Write{{Kind: store.AssistantCalls, ID: callKey(def.ID, def.Calls), Data: data,
		ExpiresAt: now.Add(keptFor)}}
	if def.Calls > keptCalls {
		out = append(out, store.Write{Kind: store.AssistantCalls, ID: callKey(def.ID, def.Calls-keptCalls)})
	}
	return out, nil
}
