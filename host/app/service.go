package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	liveview "github.com/sluicehost/sluice/host/browser/view"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/store"
)

// ServiceOptions configure a Service. Zero values are the defaults of
// security.md §17.
type ServiceOptions struct {
	Runs     int           // host.runs: how many runs execute at once; 8, at most 64
	Accepted int           // how many may be active, whatever they do (A253); 64
	Share    int           // how many of them one key may have; 0 is the controller's usual part
	Grace    time.Duration // how long Close waits for active runs (R190); 30 s
	// ShortestInterval is the least interval of a schedule that is saved; 0 is
	// schedule.DefaultShortest.
	ShortestInterval time.Duration
	// Idle starts no runs by schedule.
	Idle bool
	// Store is what runs commit to, for metrics; nil is the host's own.
	Store store.Store
	// Count is told what happens to runs, for metrics; nil for nobody.
	Count func(controller.Event)
	// Ticked is told of each history record of a schedule, once it is durable
	// (R208); it does not block. Nil for nobody.
	Ticked func(host.Tick)
	// Spans is told of what runs do, for traces; nil for nobody.
	Spans run.Spans
}

// A Service is a Host that is left running: what the dashboard, the API and
// schedules ask for, on top of what a single command needs. It implements
// host.Host. All methods may be called concurrently.
type Service struct {
	// host is the open data directory that it works on.
	host *Host
	desk *interaction.Desk
	runs *controller.Controller
	log  *slog.Logger

	store     store.Store // what runs commit to
	schedules *schedule.Scheduler

	spans run.Spans
	views *liveview.Views // of the browsers of runs

	correlations correlations // of active runs
	recordings   recordings

	mu        sync.Mutex                      // guards temporary and leftovers
	temporary map[store.ConnectionID]struct{} // connections of runs of conformance connectors
	leftovers bool                            // some could not be deleted
	closing   sync.Once                       // of Close

	names  sync.Map // module digest to Named
	putOff sync.Map // connection id to why its scheduled run was put off
}

var (
	_ host.Runs      = (*Service)(nil)
	_ host.Questions = (*Service)(nil)
)

// Service starts what goes on for as long as the host is open. There is one per
// host, and it is closed before the host is. ctx is for the start alone.
func (h *Host) Service(ctx context.Context, o ServiceOptions) (*Service, error) {
	s := &Service{host: h, desk: interaction.New(h.Store), log: h.Options.Log, store: o.Store, spans: o.Spans, temporary: map[store.ConnectionID]struct{}{}, views: liveViews(h)}
	if err := s.deleteLeftovers(ctx); err != nil {
		return nil, err
	}
	s.runs = controller.New(h.Store, controller.Options{
		Runs: o.Runs, Accepted: o.Accepted, Share: o.Share, Grace: o.Grace, Reconcile: s.reconcile, Count: o.Count, Log: h.Options.Log,
	})
	if err := s.startSchedules(ctx, o); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// Close stops schedules, refuses new starts, waits for active runs as long as ServiceOptions.Grace
// or ctx lasts, stops the rest, which fail with controller_restarted, and returns
// when all are over (R190). The host is still open.
func (s *Service) Close(ctx context.Context) {
	s.closing.Do(func() {
		s.schedules.Quiesce()
		s.views.Quiesce()
		s.runs.Shutdown(ctx)
		s.schedules.Stop(ctx)
		s.views.Close()
	})
}

// RunStats are numbers of this moment, for metrics.
func (s *Service) RunStats() controller.Stats { return s.runs.Stats() }

// OpenQuestions is how many questions wait for an answer, for metrics.
func (s *Service) OpenQuestions() int { return s.desk.Waiting() }

// unrenewed is what is left of a lease that missed a renewal (R183): who made it
// is not at work any more.
const unrenewed = 40 * time.Second

// reconcile is R188, and again for runs of this boot that nobody performs.
func (s *Service) reconcile(ctx context.Context, live func(store.RunID) bool) error {
	h := s.host
	err := h.reconcile(ctx)
	if err == nil {
		err = run.CloseLost(ctx, h.Store, h.ID, h.Epoch, func(l store.Lease) bool {
			return !live(l.RunID) && !h.active.has(l.RunID) && time.Until(l.ExpiresAt) < unrenewed
		})
	}
	s.mu.Lock()
	again := s.leftovers
	s.leftovers = false
	s.mu.Unlock()
	if again {
		err = errors.Join(err, s.deleteLeftovers(ctx))
	}
	return err
}
