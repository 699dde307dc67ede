package postgres

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/store"
)

// An ear detects whether notifications arrive, by means of probes that this host sends to itself. LISTEN may succeed
// without effect behind a proxy or a pooler.
type ear struct {
	deaf   atomic.Bool
	looked chan struct{} // closed once it is known whether the first probe arrived
	once   sync.Once     // closes looked
	opened chan struct{} // capacity 1: LISTEN has succeeded
	open   atomic.Bool   // the connection of LISTEN is there
	came   chan string   // capacity 1: the latest probe to arrive
}

func (e *ear) init() {
	e.looked, e.opened, e.came = make(chan struct{}), make(chan struct{}, 1), make(chan string, 1)
}

// listening records that LISTEN has succeeded.
func (e *ear) listening() {
	e.open.Store(true)
	select {
	case e.opened <- struct{}{}:
	default:
	}
}

// hear records the probes in one of this host's own payloads.
func (e *ear) hear(payload string) {
	for what := range strings.FieldsSeq(payload) {
		if !strings.HasPrefix(what, tellProbe) {
			continue
		}
		select {
		case <-e.came:
		default:
		}
		select {
		case e.came <- what:
		default:
		}
	}
}

// probe sends a probe about once per lease while there are other hosts, and logs when probes stop or resume arriving. A
// late probe counts when it arrives. One that was sent while the server was away says nothing.
func (s *db) probe() {
	e, every := &s.ear, s.opts.Lease
	for n := 1; ; n++ {
		select {
		case <-s.ending:
			return
		case <-s.removed:
			return
		case <-e.opened:
		case <-time.After(every / 2):
		}
		if !s.news.others.Load() { // nobody sends notifications
			e.once.Do(func() { close(e.looked) })
			continue
		}
		token, sent := tellProbe+strconv.Itoa(n), time.Now()
		s.tell(token)
		late := time.After(every / 2)
		for waiting := true; waiting; {
			select {
			case <-s.ending:
				return
			case <-s.removed:
				return
			case came := <-e.came:
				waiting = came != token
				s.hears(true)
			case <-e.opened: // the probe may have been sent before
				waiting = false
				e.listening()
			case <-late:
				waiting = false
				if e.open.Load() && s.lived.Load().After(sent) {
					s.hears(false)
				}
				e.once.Do(func() { close(e.looked) })
			}
		}
	}
}

func (s *db) hears(yes bool) {
	if was := s.ear.deaf.Swap(!yes); was == yes {
		if yes {
			s.opts.Logger.Info("notifications_arrive")
		} else {
			s.opts.Logger.Warn("notifications_lost", "detail", polling.Detail, "next", polling.Remedy)
		}
	}
	s.ear.once.Do(func() { close(s.ear.looked) })
}

var polling = store.Weakness{
	Detail: "notifications of the database do not arrive at this host, so it looks for what other hosts did: followers of runs once a second, schedules every 15 s",
	Remedy: "name the server itself in the URL of the store, or a way to it that keeps the session of LISTEN",
}

// Polling returns why this host polls for changes of others, or nil; see store.Polling.
func (s *db) Polling() *store.Weakness {
	if s.ear.deaf.Load() {
		return &polling
	}
	return nil
}
