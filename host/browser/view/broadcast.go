package view

import (
	"bytes"
	"context"
	"math"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Capture settings. Every frame is requested, since a browser that skips frames also skips the last
// one, and a page that changes once would be shown in its old state. While viewers only watch, the
// cast is stopped after each picture until the next one is due; restarting it delivers the page as
// it is.
const (
	watchQuality   = 50
	controlQuality = 60
	stillQuality   = 90
	watchRate      = time.Second / 10
	controlRate    = time.Second / 32 // slightly more than requested, on average
	quietAfter     = 300 * time.Millisecond
	stillsEvery    = time.Second
	stillLimit     = 2 * time.Second
	titleLimit     = 2 * time.Second
	castPause      = 500 * time.Millisecond // after a failed cast
	maxPicture     = 16 << 20
)

// A broadcast takes pictures of a surface while there are viewers. It keeps the newest picture and
// the frames that it compares new ones with.
type broadcast struct {
	r      *Run
	screen page.Screen
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{} // a still is requested
	idle   chan struct{} // a cast may be needed

	mu        sync.Mutex // guards the fields below; taken after Run.mu
	sequence  uint32
	latest    *picture
	lastCast  []byte
	lastStill []byte
	quiet     *time.Timer
	cast      page.Cast // the running cast
	stop      context.CancelFunc
	facts     facts
	readings  readings
	anew      bool // the next still counts even if it shows the same
}

// facts are what the host knows of the page, and the page's title.
type facts struct {
	page.Facts
	title    string
	viewport page.Viewport
	choosing bool
}

func newBroadcast(r *Run, screen page.Screen) *broadcast {
	s := &broadcast{r: r, screen: screen, kick: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.quiet = time.AfterFunc(time.Hour, s.still)
	s.quiet.Stop()
	s.facts = s.known("")
	s.still()
	return s
}

func (s *broadcast) close() {
	s.cancel()
	s.quiet.Stop()
}

func (s *broadcast) start(work *sync.WaitGroup) {
	work.Go(s.film)
	work.Go(s.stills)
	work.Go(s.follow)
}

// still requests a still.
func (s *broadcast) still() { signal(s.kick) }

// another requests a picture to replace one that could not be shown.
func (s *broadcast) another(after time.Duration) {
	s.mu.Lock()
	s.anew = true
	s.mu.Unlock()
	if after == 0 {
		s.still()
		return
	}
	time.AfterFunc(after, s.still)
}

// again restarts the cast. The caller holds Run.mu.
func (s *broadcast) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastCast = nil
	if s.stop != nil {
		s.stop()
	}
	s.still()
}

func (s *broadcast) look() {
	want := s.r.want()
	s.mu.Lock()
	defer s.mu.Unlock()
	if want != s.cast && s.stop != nil {
		s.stop()
	}
	signal(s.idle)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// want returns the cast that the viewers need, none if they want only stills. The caller holds mu.
func (r *Run) want() page.Cast {
	var c page.Cast
	for w := range r.viewers {
		switch {
		case w.stills:
		case r.lease.state == leaseHeld && r.lease.holder == w.session:
			return page.Cast{Quality: controlQuality, EveryN: 1}
		default:
			c = page.Cast{Quality: watchQuality, EveryN: 1}
		}
	}
	return c
}

// film runs the cast and restarts it when a different one is wanted.
func (s *broadcast) film() {
	for s.ctx.Err() == nil {
		s.r.mu.Lock()
		want := s.r.want()
		ctx, stop := context.WithCancel(s.ctx)
		s.mu.Lock()
		s.cast, s.stop = want, stop
		s.mu.Unlock()
		s.r.mu.Unlock()
		if want == (page.Cast{}) {
			s.rest(stop, s.idle, time.Hour)
			continue
		}
		began, shown := time.Now(), false
		err := s.screen.Cast(ctx, want, func(f page.Frame) {
			if s.publish(f, false) && want.Quality == watchQuality {
				shown = true
				stop()
			}
		})
		switch {
		case shown:
			s.rest(stop, s.idle, time.Until(began.Add(watchRate)))
		case err != nil && ctx.Err() == nil:
			s.rest(stop, nil, castPause)
		}
		stop()
	}
}

func (s *broadcast) rest(stop context.CancelFunc, until chan struct{}, most time.Duration) {
	defer stop()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-s.ctx.Done():
	case <-until:
	case <-t.C:
	}
}

// stills takes a still on request, and when no picture arrived for a while.
func (s *broadcast) stills() {
	tick := time.NewTicker(stillsEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.kick:
		case <-tick.C:
			if !s.overdue() {
				continue
			}
		}
		ctx, cancel := context.WithTimeout(s.ctx, stillLimit)
		f, err := s.screen.Still(ctx, stillQuality)
		cancel()
		if err == nil {
			s.publish(f, true)
		}
	}
}

// overdue reports whether to take a still unasked: for viewers who want only stills, and while
// there is no picture.
func (s *broadcast) overdue() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for w := range s.r.viewers {
		if w.stills {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest == nil
}

// publish stores a frame and wakes the viewers. A frame equal to the previous one is dropped, since
// a still makes the browser send a frame of its own, which would trigger the next still. It reports
// whether the frame is now the newest.
func (s *broadcast) publish(f page.Frame, still bool) bool {
	if len(f.Data) == 0 || len(f.Data) > maxPicture || !(f.Scale > 0) || math.IsInf(f.Scale, 0) {
		return false
	}
	s.mu.Lock()
	before := &s.lastCast
	if still {
		before = &s.lastStill
	}
	same := bytes.Equal(*before, f.Data)
	late := s.latest != nil && f.At.Before(s.latest.frame.At)
	if still && s.anew {
		s.anew, same = false, false
	}
	if s.ctx.Err() != nil || late || same && (!still || s.latest != nil && s.latest.still) {
		s.mu.Unlock()
		return false
	}
	s.sequence++
	s.latest = newPicture(s.sequence, f, still)
	*before = s.latest.frame.Data
	if !still {
		s.quiet.Reset(quietAfter)
	}
	s.mu.Unlock()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for w := range s.r.viewers {
		signal(w.wake)
	}
	return true
}

// newest returns the picture after the given one, or nil if there is none.
func (s *broadcast) newest(after uint32, stills bool) *picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.latest; p != nil && p.sequence != after && (p.still || !stills) {
		return p
	}
	return nil
}

// follow keeps the facts of the page up to date and tells viewers of changes.
func (s *broadcast) follow() {
	title := ""
	for {
		if s.screen.Facts().Dialog == nil {
			ctx, cancel := context.WithTimeout(s.ctx, titleLimit)
			if t, err := s.screen.Title(ctx); err == nil {
				title = clean(t, 512)
			}
			cancel()
			s.note(title)
		}
		select {
		case <-s.ctx.Done():
			return
		case <-s.screen.Changed():
		}
		s.note(title) // at once, since the title of a hanging page takes long
	}
}

func (s *broadcast) note(title string) {
	now := s.known(title)
	s.mu.Lock()
	changed := !now.same(s.facts)
	s.facts = now
	s.mu.Unlock()
	if changed {
		s.r.refresh()
	}
}

func (s *broadcast) known(title string) facts {
	return facts{Facts: s.screen.Facts(), title: title, viewport: s.screen.Viewport(), choosing: s.screen.Choosing()}
}

func (f facts) same(o facts) bool {
	a, b := f.Dialog, o.Dialog
	if (a == nil) != (b == nil) || a != nil && *a != *b {
		return false
	}
	return f.Host == o.Host && f.Document == o.Document && f.Crashed == o.Crashed && f.title == o.title &&
		f.viewport == o.viewport && f.choosing == o.choosing
}
