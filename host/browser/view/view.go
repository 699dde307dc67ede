package view

import (
	"crypto/rand"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	TokenLife  = 60 * time.Second // of a token that nobody redeems (B210)
	ResumeLife = 30 * time.Second // of a session whose connection dropped (B213)
	// MaxViewers are connected to one run at one time, MaxSessions exist, and
	// mintsPerMinute are made.
	MaxViewers     = 8
	MaxSessions    = 32
	mintsPerMinute = 60
)

// Views are the views of one host: its runs that have a browser, and the sessions
// of those who look. It may be used concurrently.
type Views struct {
	key [32]byte // of this process; tokens are made with it, so a restart voids all

	mu       sync.Mutex // guards what follows; taken before a Run's
	runs     map[string]*Run
	sessions map[string]*session // by view id
	tokens   map[digest]*session
	resumes  map[digest]*session
	replays  map[replay]*session
	stopping bool // Quiesce
	closed   bool

	viewers sync.WaitGroup // those that are connected
	work    sync.WaitGroup // pictures, and changes of leases
}

// New makes Views without runs.
func New() *Views {
	v := &Views{runs: map[string]*Run{}, sessions: map[string]*session{}, tokens: map[digest]*session{}, resumes: map[digest]*session{}, replays: map[replay]*session{}}
	_, _ = rand.Read(v.key[:]) // it never fails
	return v
}

// Quiesce says that the host is about to stop: a session whose question ends from
// here on is told that reason.
func (v *Views) Quiesce() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopping = true
}

// Close ends every session and waits until their connections have been left.
func (v *Views) Close() {
	v.mu.Lock()
	v.closed = true
	runs := make([]*Run, 0, len(v.runs))
	for _, r := range v.runs {
		runs = append(runs, r)
	}
	v.mu.Unlock()
	for _, r := range runs {
		v.endAll(r, func(*session) bool { return true }, CloseGoing, ReasonStopping)
		r.End()
	}
	v.viewers.Wait()
	v.work.Wait()
}

// Begin registers a run that has the browser binding; its surface may come later.
// event records one of run.stream_* (B214); it returns at once. End forgets it.
func (v *Views) Begin(run string, s Surface, event func(typ, status string, data map[string]any)) *Run {
	r := &Run{id: run, views: v, surface: s, event: event, viewers: map[*viewer]bool{}}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.runs[run] = r
	return r
}

func (v *Views) run(id string) *Run {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.runs[id]
}
