package fleet

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

var errClosing = &engine.Refusal{Code: "browser_capacity", Verb: engine.Open, Message: "the host is stopping"}

// Acquire gives a run a browser, by the steps of B167; a step that fails leaves
// nothing of the later ones. It takes at most the queue time of 120 s and two
// starts of 30 s. The error is an *action.Refusal, or ctx's own. Release ends what
// it gives.
func (m *Manager) Acquire(ctx context.Context, r Request) (*Surface, error) {
	if refused := CheckName(r.Profile); refused != nil {
		return nil, refused
	}
	s := &Surface{m: m, id: newID(), request: r, gone: make(chan struct{}), over: make(chan struct{}), done: make(chan struct{})}
	if r.Persistent {
		if err := m.folders.sameFolded(r.Connection, r.Profile); err != nil {
			return nil, m.refusal(err)
		}
	}
	s.event(Event{Type: EventRequested})
	if err := s.acquire(ctx); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else {
			err = m.refusal(err)
		}
		s.event(Event{Type: EventFailed, Code: codeOf(err)})
		return nil, err
	}
	return s, nil
}

func codeOf(err error) string {
	var r *engine.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return "cancelled"
}

func (s *Surface) acquire(ctx context.Context) error {
	m := s.m
	queue, stop := context.WithTimeout(ctx, queueTime)
	defer stop()
	queued := false
	waiting := func() {
		if !queued {
			s.event(Event{Type: EventQueued})
		}
		queued = true
	}
	if err := m.slots.take(queue, s.request.Scheduled, waiting); err != nil {
		return err
	}
	if err := s.obtain(ctx, queue, waiting); err != nil {
		m.slots.give()
		return err
	}
	m.mu.Lock()
	m.live[s] = struct{}{}
	closed := m.closed
	m.mu.Unlock()
	m.makeRoom(ctx)
	s.watch()
	if closed {
		s.Release(ctx)
		return errClosing
	}
	return nil
}

// obtain finds a process that is ready, or starts one.
func (s *Surface) obtain(ctx, queue context.Context, waiting func()) error {
	if p := s.m.warm(ctx, s.request); p != nil {
		s.process = p
		return nil
	}
	p, err := s.m.claim(queue, s.request, waiting)
	if err != nil {
		return err
	}
	s.event(Event{Type: EventStarting})
	for again := false; ; again = true {
		err = p.launch(ctx, s.request.Bind)
		if err == nil {
			p.isOpen()
			s.process = p
			return nil
		}
		itself := p.endedItself(err)
		p.stopBrowser(ctx)
		if !itself || again && !p.restore() {
			p.end(ctx)
			return err
		}
	}
}

// endedItself reports whether the browser, which was started, is gone again by its
// own doing and soon (B168).
func (p *process) endedItself(err error) bool {
	if time.Since(p.started) > quickEnd {
		return false
	}
	return errors.Is(err, page.ErrLost) || p.browser != nil && isClosed(p.browser.Lost())
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// newID names a surface; it says nothing about it.
func newID() string {
	var b [10]byte
	_, _ = rand.Read(b[:]) // it cannot fail
	return "sf_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}
