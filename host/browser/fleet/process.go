package fleet

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/patience"
)

// A process is a browser with all that it holds: gate, directories, uid and the lock of its
// profile. nil or 0 means not held. One goroutine owns it at a time: that of a surface, of the idle
// list, or of whoever starts or ends it.
type process struct {
	m          *Manager
	connection string // "" while it has none
	profile    string // "" for a temporary one
	kind       Kind
	uid        int
	pooled     bool // uid is borrowed from the pool
	dir, home  string
	lock       *os.File
	remove     []func() error // removes its directories at the end
	gate       Gate
	browser    page.Browser
	// leased and fence are browser and gate as the surface sees them, even after their end.
	leased  page.Browser
	fence   Gate
	started time.Time
	timer   *time.Timer // runs while it lingers
	reused  bool
	// restored means that the profile was replaced by its copy.
	restored bool
}

// claim makes the directories of a process and takes the lock of a persistent profile.
func (m *Manager) claim(ctx context.Context, r Request, waiting func()) (p *process, err error) {
	p = &process{m: m, kind: r.Kind}
	defer func() {
		if err != nil {
			p.end(context.WithoutCancel(ctx))
		}
	}()
	p.connection = r.Connection
	if !r.Persistent {
		return p, p.nobody()
	}
	if err = m.folders.connection(r.Connection); err != nil {
		return p, err
	}
	m.quiet(ctx, r)
	if p.uid, err = m.uids.of(m.folders, r.Connection); err != nil {
		return p, err
	}
	p.profile = r.Profile
	if p.lock, err = m.folders.lock(ctx, r.Connection, r.Profile, waiting); err != nil {
		return p, err
	}
	if p.dir, err = m.folders.persistent(r.Connection, r.Profile, p.uid); err != nil {
		return p, err
	}
	if err := m.folders.copy(ctx, m.o.Clone, r.Connection, r.Profile); err != nil &&
		!errors.Is(err, errors.ErrUnsupported) {
		m.o.Log.Warn("a profile has no copy", "error", err)
	}
	return p, m.folders.unlatch(r.Connection, r.Profile)
}

// isOpen keeps the copy of the profile, since it opened.
func (p *process) isOpen() {
	if p.profile == "" {
		return
	}
	if err := p.m.folders.opened(p.connection, p.profile); err != nil {
		p.m.o.Log.Warn("the copy of a profile was not kept", "error", err)
	}
}

// restore replaces the profile of a browser that keeps dying by its copy, once. No browser of the
// process may be running.
func (p *process) restore() bool {
	if p.profile == "" || p.restored {
		return false
	}
	restored, err := p.m.folders.restore(p.connection, p.profile)
	if err != nil {
		p.m.o.Log.Warn("the copy of a profile was not restored", "error", err)
	}
	p.restored = restored
	return restored
}

// nobody gives the process a uid of the pool and a temporary profile. A connection's own uid is
// only for its persistent profiles: the end of a browser kills everything under its uid, and
// another browser of the connection may be lingering.
func (p *process) nobody() error {
	uid, err := p.m.uids.borrow(p.m.folders)
	if err != nil {
		return err
	}
	p.uid, p.pooled = uid, uid != 0
	return p.temporary(&p.dir)
}

func (p *process) temporary(dir *string) error {
	path, remove, err := p.m.folders.temporary(p.uid)
	if err != nil {
		return err
	}
	*dir = path
	p.remove = append(p.remove, remove)
	return nil
}

// launch opens the gate and starts the browser behind it. On failure the caller ends the process.
func (p *process) launch(ctx context.Context, bind func(Gate) error) error {
	ctx, stop := patience.Within(ctx, startTime)
	defer stop()
	if p.home == "" {
		if err := p.temporary(&p.home); err != nil {
			return err
		}
	}
	gate, err := p.m.o.Open(ctx, p.uid)
	if err != nil {
		return err
	}
	p.gate = gate
	if err := bind(gate); err != nil {
		return err
	}
	p.started = time.Now()
	b, err := p.m.o.Start(ctx, StartOptions{Profile: p.dir, Home: p.home, UID: p.uid, Gate: gate, Kind: p.kind})
	if err != nil {
		return err
	}
	p.browser, p.leased, p.fence = b, b, gate
	if probe := p.m.ready(ctx, b); !probe.OK {
		return &notReady{probe}
	}
	return nil
}

// ready checks whether a started browser answers, with retries on a busy machine.
func (m *Manager) ready(ctx context.Context, b page.Browser) Probe {
	for left := m.o.Patience(readyTime) - readyTime; ; left -= readyTime {
		within, done := context.WithTimeout(ctx, readyTime)
		probe := m.o.Check(within, b)
		done()
		if probe.OK || probe.Code != CodeTimeout || ctx.Err() != nil || left <= 0 {
			return probe
		}
	}
}

// notReady is the error of a browser that started and does not answer.
type notReady struct{ probe Probe }

func (e *notReady) Error() string { return "the browser is not ready: " + e.probe.Code }

// stopBrowser ends the browser and its gate and keeps the rest.
func (p *process) stopBrowser(ctx context.Context) {
	var err error
	if p.browser != nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		err = p.browser.Close(ctx)
		stop()
	}
	if p.gate != nil {
		err = errors.Join(err, p.gate.Close())
	}
	p.browser, p.gate = nil, nil
	if err != nil {
		p.m.o.Log.Warn("a browser did not end cleanly", "error", err)
	}
}

// end releases everything that the process holds. It takes at most closeTime and is called once.
func (p *process) end(ctx context.Context) {
	p.stopBrowser(ctx)
	var err error
	for _, remove := range p.remove {
		err = errors.Join(err, remove())
	}
	if p.lock != nil {
		err = errors.Join(err, io.Closer(p.lock).Close())
	}
	if p.pooled {
		p.m.uids.give(p.uid)
	}
	p.remove, p.lock, p.pooled = nil, nil, false
	if err != nil {
		p.m.o.Log.Warn("what a browser left could not be removed", "error", err)
	}
}
