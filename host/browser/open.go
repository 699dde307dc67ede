package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

// An openReply is the reply of open.
type openReply struct {
	SurfaceID  string           `json:"surface_id"`
	Profile    string           `json:"profile"`
	Persistent bool             `json:"persistent"`
	Reused     bool             `json:"reused"`
	Engine     product          `json:"engine"`
	UserAgent  string           `json:"user_agent"`
	Viewport   page.Viewport    `json:"viewport"`
	Tabs       []engine.TabInfo `json:"tabs"`
	Session    sessionReply     `json:"session"`
	Navigation any              `json:"navigation"`
}

type product struct {
	Product string `json:"product"`
	Major   int    `json:"major"`
}

type sessionReply struct {
	State         string  `json:"state"`
	InteractionID *string `json:"interaction_id"`
}

// open acquires the surface, establishes the session and navigates. On failure no surface is left.
func (s *Session) open(ctx context.Context, r *engine.Request) (any, *engine.Refusal) {
	if o := s.current(); o != nil {
		switch o.State() {
		case fleet.Lost: // final; never replaced within the run
			return nil, lostRefusal(r.Verb, o)
		case fleet.Closed:
		default:
			return nil, refuse(r.Verb, "surface_already_open", "this run has a browser already")
		}
	}
	s.tracing.record(r.Open.Trace)
	o, err := s.acquire(ctx, r)
	if err != nil {
		s.mu.Lock()
		s.failed = true
		s.mu.Unlock()
		return nil, s.asRefusal(r.Verb, err)
	}
	give, refused := s.takePage(ctx, r.Verb)
	if refused != nil {
		o.Release(context.WithoutCancel(ctx))
		return nil, refused
	}
	defer give()
	out, err := s.establish(ctx, o, r)
	if err != nil {
		s.establishment.unguard()
		o.engine.Close()
		o.Release(context.WithoutCancel(ctx))
		if fault := o.Fault(); fault != nil && !isRefusal(err) {
			return nil, lostRefusal(r.Verb, o)
		}
		return nil, s.asRefusal(r.Verb, err)
	}
	return out, nil
}

func isRefusal(err error) bool {
	var r *engine.Refusal
	return errors.As(err, &r)
}

// acquire gets a surface and an engine for it.
func (s *Session) acquire(ctx context.Context, r *engine.Request) (*opened, error) {
	kind := fleet.Kind{Viewport: r.Open.Viewport, Downloads: s.o.Request.Downloads,
		DenyPopups: s.o.Request.Popups == "deny", Trusted: !s.o.Untrusted}
	var id string
	got, err := s.host.surfaces.Acquire(ctx, fleet.Request{
		Connection: s.o.Connection, Profile: fleet.Name(r.Open.Profile, s.o.ProfileName, s.o.Request.Profile, s.o.Connection),
		Persistent: r.Open.Persistent, Scheduled: s.o.Scheduled, Kind: kind, Bind: s.bind,
		Event: func(e fleet.Event) { id = e.ID; s.surfaceEvent(e) },
		Lost:  func(p fleet.Probe) { s.lost(id, p) },
	})
	if err != nil {
		return nil, err
	}
	o := &opened{Surface: got}
	o.engine = s.host.engine(s.engineOptions(got))
	if !s.hold(o) {
		got.Release(context.WithoutCancel(ctx))
		return nil, refuse(r.Verb, "surface_not_open", "the run is ending")
	}
	return o, nil
}

// hold registers the surface for the run. It reports false once the run is ending.
func (s *Session) hold(o *opened) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished != nil {
		return false
	}
	s.opened, s.failed = o, false
	if s.paused {
		o.engine.Pause()
	}
	return true
}

// bind puts a browser under the connection's policy.
func (s *Session) bind(g fleet.Gate) error {
	b, ok := g.(interface{ Bind(chromium.GateBinding) })
	if !ok {
		return errors.New("bind a gate: it takes no policy")
	}
	if d, ok := g.(interface {
		Downloads(func() bool, func(page.Download))
	}); ok {
		d.Downloads(s.deliveries.mayDownload, s.deliveries.offered)
	}
	b.Bind(chromium.GateBinding{Policy: s.o.Policy, Bytes: s.o.Bytes, Passed: s.o.Passed, Denied: s.denied})
	return nil
}

func (s *Session) engineOptions(of *fleet.Surface) engine.Options {
	return engine.Options{
		Browser: of.Browser(), Identity: engine.NewIdentity(),
		Secrets: s.seals, Files: files{s, of}, Declared: s.declared, Controlled: s.owner.Load, Dialogs: s.dialogPolicy,
		AllowURL: func(address string) error { return allowed(s.o.Policy, address) },
		Keep:     s.deliveries.keepPicture,
		Download: func(d page.Download) (any, bool) { return s.deliveries.keepDownload(of, d) }, Signal: s.signal,
		Trace: s.tracing.traceVerb, Count: s.host.o.Count,
		Broke: func(err error) { s.host.o.Log.Error("the browser engine failed", "run", s.runID, "error", err) },
	}
}

// establish establishes the session and loads the first page. The caller holds the page and
// releases the surface on failure.
func (s *Session) establish(ctx context.Context, o *opened, r *engine.Request) (*openReply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := o.Gone()
	stop := make(chan struct{})
	defer close(stop)
	s.work.Go(func() {
		select {
		case <-lost:
			cancel(lostRefusal(r.Verb, o))
		case <-stop:
		}
	})
	flow := s.establishment.flow(o, r)
	guarded := flow.Probe != nil || r.Open.Establish
	if guarded {
		o.Establish(true)
		s.establishment.settled(false)
		s.establishment.guard(func(silent time.Duration, last string) {
			cancel(s.establishment.tripped(silent, last))
			if !r.Open.Establish || s.current() != o {
				return
			}
			o.Release(context.Background()) // open may have replied long ago
		})
	}
	made, err := flow.Run(ctx)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, s.establishment.unestablished(err)
	}
	if guarded && !r.Open.Establish {
		s.establishment.unguard()
		s.establishment.settled(true)
		o.Establish(false)
	}
	out := s.describe(o, made)
	if r.Open.URL != "" {
		out.Navigation, err = s.load(ctx, o, r.Open.URL)
		if err != nil {
			return nil, err
		}
		out.Tabs = tabs(o.Browser())
	}
	o.Ready()
	s.tracing.checkpointed(o, "open")
	return out, nil
}

func (s *Session) name() string { return cmp.Or(s.o.Name, s.o.Connection) }

func (s *Session) note(what string, err error) {
	if err != nil {
		s.host.o.Log.Info(what, "run", s.runID, "error", err)
	}
}

// load navigates like a guest's request, with the same checks.
func (s *Session) load(ctx context.Context, o *opened, address string) (any, error) {
	text, err := json.Marshal(map[string]any{"verb": engine.Navigate, "url": address, "deadline_ms": 30_000})
	if err != nil {
		return nil, err
	}
	q, refused := engine.Parse(text, engine.DefaultSettings)
	if refused != nil {
		return nil, refused
	}
	result, refused := o.engine.Do(ctx, q)
	if refused != nil {
		return nil, refused
	}
	return result, nil
}

func (s *Session) describe(o *opened, made fleet.Established) *openReply {
	name, major := o.Browser().Product()
	out := &openReply{
		SurfaceID: o.ID(), Profile: o.Profile(), Persistent: o.Persistent(), Reused: o.Reused(), Engine: product{name, major},
		UserAgent: o.Browser().Agent(), Viewport: o.Browser().Screen().Viewport(), Tabs: tabs(o.Browser()),
		Session: sessionReply{State: made.State},
	}
	if made.InteractionID != "" {
		out.Session.InteractionID = &made.InteractionID
	}
	return out
}

// tabs returns the open tabs, the active one first.
func tabs(b page.Browser) []engine.TabInfo {
	out := []engine.TabInfo{}
	for i, t := range b.Tabs() {
		out = append(out, engine.TabInfo{TabID: t.ID(), URLHost: t.Facts().Host, Active: i == 0})
	}
	return out
}
