package fleet

import (
	"context"
	"time"
)

// warm returns a running browser that can serve the request, bound to its policy, or nil if there
// is none. A browser that has had a profile or a page only serves the same connection.
func (m *Manager) warm(ctx context.Context, r Request) *process {
	p := m.takeWarm(r)
	if p == nil {
		return nil
	}
	if p.bind(r) != nil || !m.ready(ctx, p.browser).OK {
		p.end(ctx)
		return nil
	}
	p.reused = true
	return p
}

// bind assigns an idle process to a request.
func (p *process) bind(r Request) error {
	p.connection = r.Connection
	return r.Bind(p.gate)
}

func (m *Manager) takeWarm(r Request) *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !r.Persistent {
		p := m.blank
		if p != nil && p.kind == r.Kind {
			m.blank = nil
			return p
		}
		return nil
	}
	for _, p := range m.idle {
		if p.connection == r.Connection && p.profile == r.Profile {
			m.takeIdle(func(o *process) bool { return o == p })
			if p.kind == r.Kind {
				return p
			}
			m.mu.Unlock() // it holds the lock of the profile and is unusable
			p.end(m.life)
			m.mu.Lock()
			return nil
		}
	}
	return nil
}

// refill starts the next blank browser once one was used, so hosts whose connectors keep profiles
// do not pay for it. The caller holds no lock.
func (m *Manager) refill(kind Kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.filling || m.blank != nil {
		return
	}
	m.filling = true
	m.work.Go(func() {
		p, err := m.startBlank(kind)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.filling = false
		if err == nil && !m.closed {
			m.blank = p
			return
		}
		if err != nil {
			m.o.Log.Info("no browser is kept ready", "error", err)
		}
		m.work.Go(func() { p.end(context.Background()) })
	})
}

// startBlank starts a browser without a connection: its gate denies everything and its uid is one
// of the pool. The process is never nil.
func (m *Manager) startBlank(kind Kind) (*process, error) {
	p := &process{m: m, kind: kind}
	if err := p.nobody(); err != nil {
		return p, err
	}
	return p, p.launch(m.life, func(Gate) error { return nil })
}

// keep lets a browser linger for its connection. It reports false if that is not possible.
func (m *Manager) keep(ctx context.Context, p *process) bool {
	resetter, can := p.browser.(Resetter)
	if m.o.Linger <= 0 || p.profile == "" || !can {
		return false
	}
	p.gate.Unbind()
	limit, stop := context.WithTimeout(context.WithoutCancel(ctx), resetTime)
	defer stop()
	if resetter.Reset(limit) != nil || !m.o.Check(limit, p.browser).OK {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	p.timer = time.AfterFunc(m.o.Linger, func() { m.expire(p) })
	m.idle = append(m.idle, p)
	return true
}

// quiet ends lingering browsers of the connection with other profiles: its uid is about to get
// another browser, and the end of either would kill both. Where browsers run as the host's user,
// nothing is killed by uid.
func (m *Manager) quiet(ctx context.Context, r Request) {
	if m.uids.first == 0 {
		return
	}
	m.mu.Lock()
	others := m.takeIdle(func(p *process) bool { return p.connection == r.Connection && p.profile != r.Profile })
	m.mu.Unlock()
	for _, p := range others {
		p.end(ctx)
	}
}

// expire ends a browser that has lingered long enough.
func (m *Manager) expire(p *process) {
	m.mu.Lock()
	mine := m.takeIdle(func(o *process) bool { return o == p })
	if len(mine) > 0 {
		m.work.Add(1)
	}
	m.mu.Unlock()
	if len(mine) > 0 {
		defer m.work.Done()
		p.end(context.Background())
	}
}

// makeRoom ends lingering browsers, oldest first, until browsers and surfaces are within the limit.
func (m *Manager) makeRoom(ctx context.Context) {
	m.mu.Lock()
	var old []*process
	if over := len(m.live) + len(m.idle) - m.o.Max; over > 0 {
		n := 0
		old = m.takeIdle(func(*process) bool { n++; return n <= over })
	}
	m.mu.Unlock()
	for _, p := range old {
		p.end(ctx)
	}
}
