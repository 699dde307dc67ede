package fleet_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

// A fake is a browser that obeys the test.
type fake struct {
	page.Browser // what is not used here panics
	lost         chan struct{}
	health       chan struct{}
	o            fleet.StartOptions

	mu       sync.Mutex
	fault    error
	ping     error         // of the browser level
	pagePing error         // of the page level; page.ErrHung waits for the context
	rescued  func()        // what Interrupt does
	closing  time.Duration // how long Close takes
	closed   int
	resets   int
	pings    int
}

func newFake() *fake {
	return &fake{lost: make(chan struct{}), health: make(chan struct{}, 1)}
}

func (f *fake) Lost() <-chan struct{}   { return f.lost }
func (f *fake) Health() <-chan struct{} { return f.health }

func (f *fake) Fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.lost:
		return chromium.ErrExited
	default:
		return f.fault
	}
}

func (f *fake) Ping(ctx context.Context) error { return f.answer(ctx, &f.ping) }

func (f *fake) PingPage(ctx context.Context) error {
	f.mu.Lock()
	f.pings++
	f.mu.Unlock()
	return f.answer(ctx, &f.pagePing)
}

func (f *fake) answer(ctx context.Context, how *error) error {
	f.mu.Lock()
	err := *how
	f.mu.Unlock()
	if err == page.ErrHung {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fake) Interrupt(context.Context) error {
	f.mu.Lock()
	rescue := f.rescued
	f.mu.Unlock()
	if rescue != nil {
		rescue()
	}
	return nil
}

func (f *fake) Close(context.Context) error {
	time.Sleep(f.closing)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	f.end()
	return nil
}

func (f *fake) end() {
	select {
	case <-f.lost:
	default:
		close(f.lost)
	}
}

// kill ends the process, as a signal would.
func (f *fake) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// crash is a renderer that died: the browser knows, and says so.
func (f *fake) crash() {
	f.set(func(f *fake) { f.fault = page.ErrGone })
	f.health <- struct{}{}
}

func (f *fake) Cookies(context.Context, []string) ([]*http.Cookie, error) { return nil, nil }

// A lingerer can lose its tabs.
type lingerer struct{ *fake }

func (l lingerer) Reset(context.Context) error {
	l.set(func(f *fake) { f.resets++ })
	return nil
}

// A gate counts what is done to it.
type gate struct {
	lost   chan struct{}
	mu     sync.Mutex
	bound  int
	loose  int
	closed int
}

func (g *gate) Lost() <-chan struct{} { return g.lost }
func (g *gate) Unbind()               { g.mu.Lock(); g.loose++; g.mu.Unlock() }
func (g *gate) Close() error          { g.mu.Lock(); g.closed++; g.mu.Unlock(); return nil }

// A stage is a manager with fakes.
type stage struct {
	*fleet.Manager
	dir string

	mu      sync.Mutex
	fakes   []*fake
	gates   []*gate
	events  []fleet.Event
	lost    []fleet.Probe
	next    func() (page.Browser, *fake, error) // nil: a healthy one
	linger  bool
	started []fleet.StartOptions
}

func newStage(t *testing.T, change func(*fleet.Options)) *stage {
	t.Helper()
	s := &stage{dir: filepath.Join(t.TempDir(), "profiles")}
	idle := func(d time.Duration) time.Duration { return d } // no test knows how busy the machine is
	o := fleet.Options{Dir: s.dir, Start: s.start, Open: s.open, Patience: idle}
	if change != nil {
		change(&o)
	}
	m, err := fleet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Manager = m
	return s
}

func (s *stage) start(_ context.Context, o fleet.StartOptions) (page.Browser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, o)
	f := newFake()
	f.o = o
	if s.next != nil {
		b, of, err := s.next()
		if of != nil {
			of.o = o
			s.fakes = append(s.fakes, of)
		}
		return b, err
	}
	s.fakes = append(s.fakes, f)
	if s.linger {
		return lingerer{f}, nil
	}
	return f, nil
}

func (s *stage) open(context.Context, int) (fleet.Gate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &gate{lost: make(chan struct{})}
	s.gates = append(s.gates, g)
	return g, nil
}

func (s *stage) request(connection, profile string) fleet.Request {
	return fleet.Request{
		Connection: connection, Profile: profile, Persistent: true,
		Bind: func(g fleet.Gate) error {
			of := g.(*gate)
			of.mu.Lock()
			of.bound++
			of.mu.Unlock()
			return nil
		},
		Event: func(e fleet.Event) { s.mu.Lock(); s.events = append(s.events, e); s.mu.Unlock() },
		Lost:  func(p fleet.Probe) { s.mu.Lock(); s.lost = append(s.lost, p); s.mu.Unlock() },
	}
}

func (s *stage) types() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		out = append(out, e.Type[len("run.browser_surface_"):])
	}
	return out
}

// left are the names in the directory of profiles, temporary ones among them.
func (s *stage) left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, dir))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func end(t *testing.T, s *stage) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
