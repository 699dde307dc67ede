package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host/browser/chromium"
	"github.com/sluicehost/sluice/host/browser/engine"

	"github.com/sluicehost/sluice/host/browser/fleet"
	"github.com/sluicehost/sluice/host/browser/page"
)

// An openReply is what open replies.
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

// open acquires the surface, makes the session, and navigates. A failure
// leaves no surface.
func (s *Session) open(ctx context.Context, r *engine.Request) (any, *engine.Refusal) {
	if o := s.current(); o != nil {
		switch o.State() {
		case fleet.Lost: // final; never replaced inside the run
			return nil, lostRefusal(r.Verb, o)
		case fleet.Closed:
		default:
			return nil, refuse(r.Verb, "surface_already_open", "this run has a browser already")
		}
	}
	s.record(r.Open.Trace)
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
		s.unguard()
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

// acquire gets the surface and puts an engine on it.
func (s *Session) acquire(ctx context.Context, r *engine.Request) (*opened, error) {
	kind := fleet.Kind{Viewport: r.Open.Viewport, Downloads: s.o.Request.Downloads, DenyPopups: s.o.Request.Popups == "deny", Trusted: !s.o.Untrusted}
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

// hold registers the surface for the run; false once the run is ending.
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
		d.Downloads(s.mayDownload, s.offered)
	}
	b.Bind(chromium.GateBinding{Policy: s.o.Policy, Bytes: s.o.Bytes, Passed: s.o.Passed, Denied: s.denied})
	return nil
}

func (s *Session) engineOptions(of *fleet.Surface) engine.Options {
	return engine.Options{
		Browser: of.Browser(), Identity: engine.NewIdentity(), Threshold: s.host.o.Threshold,
		Secrets: secrets{s}, Files: files{s, of}, Declared: s.declared, Controlled: s.owner.Load, Dialogs: s.dialogPolicy,
		AllowURL: func(address string) error { return allowed(s.o.Policy, address) },
		Keep:     s.keepPicture, Download: func(d page.Download) (any, bool) { return s.keepDownload(of, d) },
		Signal: s.signal, Trace: s.traceVerb, Count: s.host.o.Count,
		Broke: func(err error) { s.host.o.Log.Error("the browser engine failed", "run", s.runID, "error", err) },
	}
}

// establish makes the session and loads the first page. The caller
// holds the page, and gives the surface back when it fails.
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
	flow := s.flow(o, r)
	guarded := flow.Probe != nil || r.Open.Establish
	if guarded {
		o.Establish(true)
		s.settled(false)
		s.guard(func(silent time.Duration, last string) {
			cancel(s.tripped(silent, last))
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
		return nil, s.unestablished(err)
	}
	if guarded && !r.Open.Establish {
		s.unguard()
		s.settled(true)
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
	s.checkpointed(o, "open")
	return out, nil
}

// flow is the session flow that a request asks for.
func (s *Session) flow(o *opened, r *engine.Request) fleet.Flow {
	want := r.Open.Session
	if want == nil || want.Expect == nil {
		return fleet.Flow{}
	}
	f := fleet.Flow{
		Message: want.Message, Timeout: want.Owner,
		Mark: func(phase string) {
			s.checkpoint(phase)
			s.checkpointed(o, phase)
		},
		Probe: func(ctx context.Context) (bool, error) { return s.probeSession(ctx, o, want) },
		Login: func(ctx context.Context) {
			if want.LoginURL != "" {
				_, err := s.load(ctx, o, want.LoginURL)
				s.note("the page to sign in at was not loaded", err)
			}
		},
	}
	if f.Message == "" {
		f.Message = s.name() + " session expired. Open the browser and sign in again, then continue."
	}
	if s.o.Interactive {
		f.Ask = s.askOwner
	}
	return f
}

func (s *Session) name() string {
	if s.o.Name != "" {
		return s.o.Name
	}
	return s.o.Connection
}

func (s *Session) note(what string, err error) {
	if err != nil {
		s.host.o.Log.Info(what, "run", s.runID, "error", err)
	}
}

// probeSession loads the address of the probe and checks its condition with the
// routine of stabilisation, within its time. A page that cannot be loaded is not live.
func (s *Session) probeSession(ctx context.Context, o *opened, want *engine.Session) (bool, error) {
	limit, stop := context.WithTimeout(ctx, want.Timeout)
	defer stop()
	if want.ProbeURL != "" {
		if _, err := s.load(limit, o, want.ProbeURL); err != nil {
			s.note("the page of the session's probe was not loaded", err)
		}
	}
	left := time.Until(deadlineOf(limit))
	if left <= 0 || ctx.Err() != nil {
		return false, ctx.Err()
	}
	q := &engine.Request{Verb: engine.Expect, Expect: want.Expect, Verify: s.settings().Clamped(false), Deadline: left, ExpectArgs: engine.ExpectArgs{Timeout: left}}
	result, refused := o.engine.Do(ctx, q)
	if refused != nil {
		return false, refused
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return succeeded(result)
}

func deadlineOf(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}

// succeeded reads the success of a reply.
func succeeded(result any) (bool, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return false, err
	}
	var of struct {
		Success bool `json:"success"`
	}
	err = json.Unmarshal(text, &of)
	return of.Success, err
}

// load navigates as a guest would, with all that is checked then.
func (s *Session) load(ctx context.Context, o *opened, address string) (any, error) {
	text, err := json.Marshal(map[string]any{"verb": engine.Navigate, "url": address, "deadline_ms": 30_000})
	if err != nil {
		return nil, err
	}
	q, refused := engine.ParseWith(text, s.settings())
	if refused != nil {
		return nil, refused
	}
	result, refused := o.engine.Do(ctx, q)
	if refused != nil {
		return nil, refused
	}
	return result, nil
}

// askOwner asks the owner to sign in. Meanwhile the page is theirs, and no clock of
// the run goes.
func (s *Session) askOwner(ctx context.Context, message string, timeout time.Duration) (string, error) {
	<-s.page // given back before the owner is asked
	defer func() { s.page <- struct{}{} }()
	s.mu.Lock()
	s.stand("ask", true, 0)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.stand("ask", false, 0)
		s.mu.Unlock()
	}()
	id, _, err := s.back.Ask(ctx, message, timeout)
	if errors.Is(err, ErrNotInteractive) {
		return "", fleet.ErrNobody
	}
	if err != nil {
		return "", err
	}
	return id, s.untilReleased(ctx)
}

// leaseEnds is how long the owner's lease may outlast the question it was for.
const leaseEnds = 30 * time.Second

// untilReleased waits for the end of the owner's lease.
func (s *Session) untilReleased(ctx context.Context) error {
	for end := time.Now().Add(leaseEnds); s.owner.Load() && time.Now().Before(end); {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Session) checkpoint(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dog != nil {
		s.dog.Mark(phase)
	}
}

// unestablished ends collection where there is no session; every other error
// passes through.
func (s *Session) unestablished(err error) error {
	var r *engine.Refusal
	if errors.As(err, &r) && r.Code == "session_not_live" {
		s.back.End(Failure{Code: r.Code, Message: s.name() + ": " + r.Message, Hint: "manual_action_required"})
	}
	return err
}

// tripped ends collection because nothing was heard for too long.
func (s *Session) tripped(silent time.Duration, last string) error {
	name := s.o.Connector
	if name == "" {
		name = s.o.Connection
	}
	message := fmt.Sprintf("%s_session_establish_timeout: no checkpoint for %d ms; the last one was %s", name, silent.Milliseconds(), last)
	s.back.End(Failure{Code: "session_establish_timeout", Message: message, Retryable: !s.submitted.Load()})
	return refuse(engine.Open, "surface_not_open", "the session was not established in time")
}

func (s *Session) describe(o *opened, made fleet.Established) *openReply {
	name, major := o.Browser().Product()
	out := &openReply{
		SurfaceID: o.ID(), Profile: o.Profile(), Persistent: o.Persistent(), Reused: o.Reused(), Engine: product{name, major},
		UserAgent: o.Browser().Agent(), Viewport: o.Browser().Screen().Viewport(), Tabs: tabs(o.Browser()), Session: sessionReply{State: made.State},
	}
	if made.InteractionID != "" {
		out.Session.InteractionID = &made.InteractionID
	}
	return out
}

// tabs are the open tabs, the active one first.
func tabs(b page.Browser) []engine.TabInfo {
	out := []engine.TabInfo{}
	for i, t := range b.Tabs() {
		out = append(out, engine.TabInfo{TabID: t.ID(), URLHost: t.Facts().Host, Active: i == 0})
	}
	return out
}
