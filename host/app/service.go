package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/assistant"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/query"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/host/search"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// ServiceOptions configure a Service. Zero values mean the defaults.
type ServiceOptions struct {
	Runs     int           // host.runs: how many runs execute at once; default 8, at most 64
	Accepted int           // how many runs may be active; default 64
	Share    int           // how many of them one key may have; see controller.Options
	Grace    time.Duration // how long Close waits for active runs; default 30 s
	// ShortestInterval is the shortest interval of a schedule that may be saved; 0 means
	// schedule.DefaultShortest.
	ShortestInterval time.Duration
	// Webhooks restrict where webhooks may post; see webhook.NewCourier.
	Webhooks webhook.Options
	// Idle disables the scheduler and work with other hosts, for commands.
	Idle bool
	// Store is the store that runs commit to, for metrics; nil means the host's own.
	Store store.Store
	// Count receives what happens to runs, for metrics; nil discards it.
	Count func(controller.Event)
	// Ticked receives each history record of a schedule once it is durable. It must not block; nil discards
	// them.
	Ticked func(host.Tick)
	// Spans receives what runs do, for traces; nil discards it.
	Spans run.Spans
}

// A Service is a Host that stays running, for the dashboard, the API and schedules. It implements host.Host:
// each of its interfaces is implemented by one part, which newService connects. All methods may be called
// concurrently.
type Service struct {
	*runs
	*forks
	*artifacts
	*recordFiles
	*questions
	*connectors
	*connectorNames
	*connections
	*grants
	*state
	*secrets
	*authorizations
	*schedules
	*backups
	*destinations
	*assistant.Gateway
	*query.Mirror
	*search.Indexes
	*system
	*views
	*hosts
	closing sync.Once // guards Close
}

var _ host.Host = (*Service)(nil)

// Service starts what runs for as long as the host is open. A host has at most one service, which is closed
// before the host. ctx is only for the start.
func (h *Host) Service(ctx context.Context, o ServiceOptions) (*Service, error) {
	s := newService(h, o)
	var err error
	if s.Feeds, err = openDestinations(ctx, h.directory, h.SigningSecrets(), o); err != nil {
		return nil, err
	}
	if s.Gateway, err = openAssistants(ctx, h.directory, s, s.hosts); err != nil {
		s.Feeds.Close()
		return nil, err
	}
	s.connections.copies = append(s.connections.copies, s.Gateway)
	if err := s.temporaries.deleteLeftovers(ctx); err != nil {
		s.Gateway.CloseAssistants()
		s.Feeds.Close()
		return nil, err
	}
	s.controller = controller.New(h.Store, controller.Options{
		Runs: o.Runs, Accepted: o.Accepted, Share: o.Share, Grace: o.Grace, Reconcile: s.reconcile,
		MemoryShort: h.Options.Journal.memoryShort(), Count: o.Count, Log: h.Options.Log,
	})
	if err := s.runs.wake(ctx); err != nil {
		s.Close(ctx)
		return nil, err
	}
	if o.Idle {
		return s, nil
	}
	if err := s.joinHosts(ctx); err != nil {
		s.Close(ctx)
		return nil, err
	}
	if err := s.schedules.start(ctx); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// joinHosts starts the work with the hosts that share the store.
func (s *Service) joinHosts(ctx context.Context) error {
	if s.hosts.members == nil {
		return nil
	}
	p, err := newPeers(s.hosts)
	if err != nil {
		return err
	}
	serve(p, "look", s.runs.look)
	serve(p, verbStart, s.runs.startHere)
	serve(p, verbStartAt, s.runs.startHere)
	serve(p, verbForkAt, s.forks.forkHere)
	serve(p, "take", s.suspended.adopt)
	serve(p, "cancel", s.runs.cancel)
	serve(p, "pause", s.runs.pause)
	serve(p, "resume", s.runs.goOn)
	serve(p, "answer", s.questions.answer)
	serve(p, "question", s.questions.raw)
	serve(p, feedVerb, s.destinations.here)
	serve(p, decideVerb, func(ctx context.Context, q assistant.Decision) (struct{}, error) {
		return struct{}{}, s.DecideCall(ctx, q.Name, q.Call, q.Yes)
	})
	serve(p, authorizationVerb, s.authorizations.look)
	serve(p, cancelAuthorizationVerb, s.authorizations.cancel)
	s.hosts.peers = p
	return s.hosts.begin(ctx)
}

// newService connects the parts of a service and starts nothing.
func newService(h *Host, o ServiceOptions) *Service {
	d, broker := h.directory, interaction.New(h.Store)
	t := &temporaries{directory: d, modules: h.modules, temporary: map[store.ConnectionID]struct{}{}}
	if store.MembersOf(d.Store) != nil {
		t.spared = sparedTime
	}
	s := &Service{recordFiles: h.recordFiles, questions: &questions{directory: d, broker: broker},
		connectorNames: &connectorNames{directory: d}, backups: h.backups}
	s.runs = &runs{
		directory: d, starter: h.starter, bindings: h.bindings, temporaries: t, broker: broker, spans: o.Spans,
		commitTo: o.Store, idle: o.Idle, workflows: &workflows{d, h.modules, h.connections, t},
	}
	s.runs.suspended = newSuspendedRuns(s.runs)
	h.active.cancelSuspended, h.active.suspended = s.runs.suspended.cancelOf, s.runs.suspended.withdrawals
	s.hosts = &hosts{directory: d, runs: s.runs, members: store.MembersOf(d.Store)}
	s.artifacts = &artifacts{d, s.hosts}
	s.destinations = &destinations{hosts: s.hosts}
	s.runs.hosts, s.questions.hosts = s.hosts, s.hosts
	s.forks = &forks{d, s.runs, h.connections}
	s.schedules = &schedules{directory: d, runs: s.runs, connections: h.connections,
		snapshots: h.snapshots, checks: h.checks}
	deps := schedule.Deps{
		Store: d.Store, Starter: scheduleRunner{s.schedules}, Source: scheduleRunner{s.schedules}, Log: d.Options.Log,
		Shortest: o.ShortestInterval, Done: o.Ticked,
	}
	if m := s.hosts.members; m != nil {
		deps.Hosts, deps.Now = &hostsOfSchedules{s.hosts, deps.Source}, m.Now
	}
	s.schedules.clock = schedule.New(deps)
	ov := &overviews{d, h.snapshots, s.schedules, s.schedules.clock}
	s.connectors = &connectors{d, h.modules, h.publishers, h.installer, ov}
	s.Mirror, s.Indexes = newMirror(d), newIndexes(d)
	s.connections = &connections{d, []copies{s.Mirror, s.Indexes}, h.connections, ov, s.schedules, h.artifacts,
		h.secretStore, h.bindings}
	s.grants = &grants{d, h.connections, h.grantStore, ov, h.bindings, s.schedules, s.runs.workflows}
	s.state = &state{d, h.connections, s.schedules.clock}
	s.secrets = &secrets{h.connections, h.secretStore, ov}
	s.authorizations = &authorizations{authorizer: h.authorizer, workflows: s.runs.workflows, hosts: s.hosts}
	s.system = &system{d, h.guests, h.bindings, h.checks, s.runs}
	s.views = &views{liveViews(d), s.system, s.hosts}
	return s
}

// Close stops schedules, refuses new starts, waits for active runs for ServiceOptions.Grace or until ctx ends,
// stops the rest, which fail with controller_restarted, and returns when all are over. The host stays open.
func (s *Service) Close(ctx context.Context) {
	s.closing.Do(func() {
		s.clock.Quiesce()
		s.authorizations.close()
		s.views.views.Quiesce()
		s.Gateway.CloseAssistants()
		s.suspended.close()
		s.controller.Shutdown(ctx)
		s.runs.broker.Close()
		s.Feeds.Close()
		if err := s.Mirror.Close(); err != nil {
			s.system.Options.Log.Warn("query_copies_not_removed", "error", err)
		}
		if err := s.Indexes.Close(); err != nil {
			s.system.Options.Log.Warn("search_indexes_not_closed", "error", err)
		}
		s.clock.Stop(ctx)
		s.views.views.Close()
		s.hosts.end()
	})
}

// RunStats returns the current figures of the controller, for metrics.
func (rs *runs) RunStats() controller.Stats { return rs.controller.Stats() }

// OpenQuestions returns how many questions wait for an answer, for metrics.
func (qs *questions) OpenQuestions() int { return qs.broker.Waiting() }

// unrenewed is the remaining time of a lease below which its holder has missed a renewal and is not working any
// more.
const unrenewed = 40 * time.Second

// wake takes over the waiting runs of an earlier start, so that their questions are asked again, and closes its
// other runs.
func (rs *runs) wake(ctx context.Context) error {
	return rs.directory.reconcile(ctx, rs.suspended.take)
}

// reconcile closes the runs that an earlier start left active, and those of this start that nobody performs.
func (rs *runs) reconcile(ctx context.Context, live func(store.RunID) bool) error {
	err := rs.wake(ctx)
	if err == nil {
		err = run.CloseLost(ctx, rs.Store, rs.ID, rs.Epoch, func(l store.Lease) bool {
			return !live(l.RunID) && !rs.starter.active.has(l.RunID) && time.Until(l.ExpiresAt) < unrenewed
		}, rs.suspended.take)
	}
	rs.temporaries.mu.Lock()
	again := rs.temporaries.leftovers
	rs.temporaries.leftovers = false
	rs.temporaries.mu.Unlock()
	if again {
		err = errors.Join(err, rs.temporaries.deleteLeftovers(ctx))
	}
	return err
}
