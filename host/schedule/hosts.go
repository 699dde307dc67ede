package schedule

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/store"
)

// adopt follows the open tick of a schedule if its host has ended, or an earlier start of this host
// left it.
func (s *Scheduler) adopt(ctx context.Context, id store.ConnectionID, d document) error {
	if d.Open == nil {
		return nil
	}
	alive := false
	if d.Open.Host != "" {
		var err error
		if alive, err = s.hosts.Alive(ctx, d.Open.Host); err != nil || alive {
			return err
		}
		if fits, err := s.hosts.Fits(ctx, id); err != nil || !fits {
			return err
		}
	}
	var open *openTick
	d, err := s.documents.change(ctx, id, func(now *document) ([]store.Write, error) {
		if open = nil; now.Open == nil || now.Open.Host != d.Open.Host {
			return nil, errUnchanged // another host was faster, or it is recorded already
		}
		open = now.Open
		if now.Open.Host == s.hosts.Self() {
			return nil, errUnchanged
		}
		now.Open.Host = s.hosts.Self()
		return nil, nil
	})
	if err == nil && open != nil {
		s.work.Go(func() { s.guarded(id, func() { s.follower.follow(id, *open) }) })
	}
	return err
}

// Times of refresh.
const (
	refreshRest  = 2 * time.Second  // between two checks
	refreshEvery = 15 * time.Second // without a wake-up
)

// refresh follows changes that other hosts make to the schedules, and takes over open ticks of
// hosts that ended.
func (s *Scheduler) refresh() {
	wake, stop := s.hosts.Changed()
	defer stop()
	if wake == nil {
		return
	}
	for {
		timer := time.NewTimer(refreshEvery)
		select {
		case <-wake:
		case <-timer.C:
		case <-s.stopping:
		}
		timer.Stop()
		if s.stopped() {
			return
		}
		if err := s.lookAgain(); err != nil && s.ctx.Err() == nil {
			s.log.Error("schedules of other hosts are not followed", "error", err)
		}
		if !s.sleep(refreshRest) {
			return
		}
	}
}

func (s *Scheduler) lookAgain() error {
	there := map[store.ConnectionID]bool{}
	err := s.documents.each(s.ctx, func(d store.Document) error {
		id := store.ConnectionID(d.ID)
		there[id] = true
		doc, err := decode(d)
		if err != nil {
			return nil // never due
		}
		s.plans.planDocument(id, doc)
		if doc.Open != nil && doc.Open.Host == s.hosts.Self() {
			return nil
		}
		return s.adopt(s.ctx, id, doc)
	})
	if err != nil {
		return err
	}
	for _, id := range s.plans.ids() {
		if !there[id] {
			s.plans.drop(id)
		}
	}
	return nil
}
