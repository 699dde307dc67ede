package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/oauth"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// Limits of authorizations.
const (
	maxAuthorizations = 8                // at once, including finished ones that are not forgotten yet
	authorizationLook = 30 * time.Second // how long Authorization waits for a change
	authorizationPeek = 2 * time.Second  // how long another host waits for it, which occupies that meanwhile
	authorizationKept = 90 * time.Second // how long one is kept after its last query
)

// authorizations implements host.Authorizations.
type authorizations struct {
	*authorizer
	workflows *workflows
	hosts     *hosts

	mu     sync.Mutex // guards what follows
	open   map[string]*authorization
	closed bool
}

var _ host.Authorizations = (*authorizations)(nil)

// An authorization is pending, with a goroutine of its own, or finished.
type authorization struct {
	id     string
	by     string // the principal that may query it
	end    context.CancelFunc
	ended  chan struct{} // closed when its goroutine is done
	expiry *time.Timer   // forgets it after authorizationKept

	mu      sync.Mutex // guards what follows
	now     host.Authorization
	changed chan struct{} // closed when now is replaced
}

// update changes the visible state and wakes those who wait for that.
func (a *authorization) update(change func(*host.Authorization)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.now)
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *authorization) state() (host.Authorization, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now, a.changed
}

// Authorize implements host.Authorizations.
func (as *authorizations) Authorize(ctx context.Context, q host.NewAuthorization) (host.Authorization, error) {
	if q.Overrides == nil {
		return host.Authorization{}, invalid("given", "required", "it names what is authorized")
	}
	w, err := as.workflows.withOverrides(ctx, q.Connector, q.Overrides)
	if err != nil {
		return host.Authorization{}, asRefusal(err)
	}
	o, err := Authorizable(w.loaded.Manifest, q.Secret)
	switch {
	case err != nil:
		return host.Authorization{}, invalid("secret", "authorizable", "%v", err)
	case !slices.Contains(o.Authorize, q.Flow):
		return host.Authorization{}, invalid("flow", "offered", "the connector offers no such way")
	}
	given, err := as.bindings.approval(w.loaded.Manifest, host.Bindings{Network: q.Overrides.Bindings.Network})
	if err != nil {
		return host.Authorization{}, err
	}
	who := RunRequest{Connector: w.loaded, Connection: w.connection, Config: q.Overrides.Settings, Approved: given.Approved}
	under, end := context.WithCancel(context.WithoutCancel(ctx))
	a := &authorization{by: host.Who(ctx).ID, end: end, ended: make(chan struct{}), changed: make(chan struct{})}
	a.now = host.Authorization{ConnectionID: string(who.connectionID()), Secret: q.Secret,
		Status: host.AuthorizationStarting}
	if err := as.admit(a); err != nil {
		return host.Authorization{}, err
	}
	c, via, err := as.begin(ctx, who, o, q.Secret)
	if err != nil {
		close(a.ended)
		as.forget(a)
		return host.Authorization{}, asRefusal(err)
	}
	a.now.ClientID = abi.Clean(c.ID)
	go func() {
		defer close(a.ended)
		defer via.Close()
		s, err := a.ask(under, c, q.Flow)
		if err == nil {
			err = as.storeToken(under, w.loaded.Manifest, o, who.connectionID(), q.Secret, s)
		}
		a.update(func(now *host.Authorization) { as.finish(now, err) })
	}()
	now, _ := a.state()
	return now, nil
}

// admit registers an authorization and assigns its id.
func (as *authorizations) admit(a *authorization) error {
	as.mu.Lock()
	defer as.mu.Unlock()
	switch {
	case as.closed:
		return host.Refuse("unavailable", "the host is stopping")
	case len(as.open) >= maxAuthorizations:
		return host.Refuse("rate_limited", "%d authorizations wait for their owner; end one of them first", len(as.open))
	case as.open == nil:
		as.open = map[string]*authorization{}
	}
	a.id = "aut_" + strings.TrimPrefix(string(run.NewRunID(time.Now())), "run_")
	if as.shared() {
		a.id += "_" + strings.TrimPrefix(as.hosts.ID, hostPrefix) // so that other hosts know whom to ask
	}
	a.now.AuthorizationID = a.id
	a.expiry = time.AfterFunc(authorizationKept, func() { as.forget(a) })
	as.open[a.id] = a
	return nil
}

// ask obtains a token from the server, and shows the owner what to do for it.
func (a *authorization) ask(ctx context.Context, c *oauth.Client, flow string) (oauth.Stored, error) {
	if flow == abi.OAuthDevice {
		return c.Device(ctx, func(d oauth.DeviceCode) {
			a.update(func(now *host.Authorization) {
				until := d.Expires.UTC()
				now.Status, now.URL, now.Server, now.Code, now.ExpiresAt = host.AuthorizationWaiting, d.URL, d.Host, d.Code, &until
			})
		})
	}
	return c.Browser(ctx, func(url string) {
		a.update(func(now *host.Authorization) { now.Status, now.URL = host.AuthorizationWaiting, url })
	})
}

// finish sets the final state of an authorization: stored, or failed with a reason.
func (as *authorizations) finish(now *host.Authorization, err error) {
	now.Status, now.URL, now.Server, now.Code, now.ExpiresAt = host.AuthorizationStored, "", "", "", nil
	if err == nil {
		return
	}
	var denied *egress.Error
	var failed *oauth.Error
	var refused *host.Refusal
	now.Status = host.AuthorizationFailed
	switch {
	case errors.Is(err, context.Canceled):
		now.Error, now.Message = "cancelled", "it was given up"
	case errors.As(err, &denied) && denied.Errno == abi.EDENIED:
		now.Error, now.Message = denied.Code, denied.Message
	case errors.As(err, &failed):
		now.Error, now.Message = failed.Code, failed.Message+"; nothing is stored"
	case errors.As(asRefusal(err), &refused):
		now.Error, now.Message = refused.Code, refused.Message
	default:
		as.Options.Log.Error("authorization failed", "error", err)
		now.Error, now.Message = "runtime_error", "the host failed to store it; its log says more"
	}
	now.Message = abi.Cut(abi.Clean(now.Message), 1000)
}

// find returns an authorization of the caller, and keeps it for longer. One of another principal is
// store.ErrNotFound.
func (as *authorizations) find(ctx context.Context, id string) (*authorization, error) {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.open[id]
	if a == nil || a.by != host.Who(ctx).ID {
		return nil, notFound("authorization")
	}
	a.expiry.Reset(authorizationKept)
	return a, nil
}

// An authorizationQuery asks for the state of an authorization once it is not After, or Within.
type authorizationQuery struct {
	ID     string        `json:"id"`
	After  string        `json:"after"`
	Within time.Duration `json:"within"`
}

// The verbs of commands about authorizations.
const (
	authorizationVerb       = "authorization"
	cancelAuthorizationVerb = "cancel authorization"
)

// Authorization implements host.Authorizations.
func (as *authorizations) Authorization(ctx context.Context, id, after string) (host.Authorization, error) {
	q := authorizationQuery{id, after, authorizationLook}
	m, err := as.holder(ctx, id)
	if err != nil {
		return host.Authorization{}, err
	}
	if m == nil {
		return as.look(ctx, q)
	}
	q.Within = authorizationPeek
	for until := time.Now().Add(authorizationLook); ; {
		now, err := atMember[authorizationQuery, host.Authorization](ctx, as.hosts.peers, m, authorizationVerb, q)
		if err != nil || now.Status != after || !time.Now().Before(until) {
			return now, as.ended(err)
		}
	}
}

// look returns the state of an authorization of this host.
func (as *authorizations) look(ctx context.Context, q authorizationQuery) (host.Authorization, error) {
	a, err := as.find(ctx, q.ID)
	if err != nil {
		return host.Authorization{}, err
	}
	late := time.NewTimer(min(q.Within, authorizationLook))
	defer late.Stop()
	for {
		now, changed := a.state()
		if now.Status != q.After {
			return now, nil
		}
		select {
		case <-changed:
		case <-late.C:
			return now, nil
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

// CancelAuthorization implements host.Authorizations.
func (as *authorizations) CancelAuthorization(ctx context.Context, id string) error {
	m, err := as.holder(ctx, id)
	if err != nil {
		return err
	}
	if m == nil {
		_, err = as.cancel(ctx, id)
		return err
	}
	_, err = atMember[string, struct{}](ctx, as.hosts.peers, m, cancelAuthorizationVerb, id)
	return as.ended(err)
}

// cancel cancels an authorization of this host.
func (as *authorizations) cancel(ctx context.Context, id string) (struct{}, error) {
	a, err := as.find(ctx, id)
	if err != nil {
		return struct{}{}, err
	}
	as.forget(a)
	select {
	case <-a.ended:
		return struct{}{}, nil
	case <-ctx.Done():
		return struct{}{}, ctx.Err()
	}
}

func (as *authorizations) shared() bool { return as.hosts != nil && as.hosts.members != nil }

// holder returns the other host that its id says has an authorization, nil if none does that is there.
func (as *authorizations) holder(ctx context.Context, id string) (*store.Member, error) {
	at := hostPrefix + id[strings.LastIndexByte(id, '_')+1:]
	if !as.shared() || as.hosts.peers == nil || at == as.hosts.ID {
		return nil, nil
	}
	all, err := as.hosts.list(ctx)
	if i := slices.IndexFunc(all, func(m store.Member) bool { return m.ID == at }); i >= 0 {
		return &all[i], err
	}
	return nil, err
}

// ended returns the error about an authorization of another host: it ended with that host.
func (as *authorizations) ended(err error) error {
	if errors.Is(err, errOrphan) {
		return notFound("authorization")
	}
	return err
}

// forget cancels an authorization and removes it from the list.
func (as *authorizations) forget(a *authorization) {
	as.mu.Lock()
	defer as.mu.Unlock()
	delete(as.open, a.id)
	a.expiry.Stop()
	a.end()
}

// close cancels all authorizations and waits until they are over.
func (as *authorizations) close() {
	as.mu.Lock()
	as.closed = true
	var all []*authorization
	for _, a := range as.open {
		all = append(all, a)
	}
	as.mu.Unlock()
	for _, a := range all {
		as.forget(a)
		<-a.ended
	}
}
