package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Courier posts signed bodies for other rooms, by the rules of webhooks: to public
// addresses only, which are checked whenever one is dialled, over TLS, with no redirect
// followed and nothing kept of an answer but its status. All methods may be called
// concurrently.
type Courier struct {
	gate *gate
	post func(context.Context, message) (int, error)
}

// NewCourier makes a courier. Of the options Forbidden, AllowLoopback, Alive, Resolver
// and Version count; without Forbidden no address but a loopback is posted to.
func NewCourier(o Options) *Courier {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Forbidden == nil {
		o.Forbidden = func(netip.Addr) string { return "nothing is posted by this host" }
	}
	g := &gate{o.Resolver, o.Forbidden, o.AllowLoopback, o.Alive}
	return &Courier{gate: g, post: newPoster(g, "Sluice/"+o.Version, o.tls).post}
}

// Check refuses what is no URL that is ever posted to, or no secret to sign with, without
// reaching for anything. *Refusal.
func (c *Courier) Check(url string, secrets []string) error {
	if _, err := c.gate.parse(url); err != nil {
		return err
	}
	for _, s := range secrets {
		if _, err := keyOf(s); err != nil {
			return err
		}
	}
	return nil
}

// Reach looks the name of a URL up. *Refusal.
func (c *Courier) Reach(ctx context.Context, url string) error { return c.gate.accept(ctx, url) }

// A Failure is a post that was not taken.
type Failure struct {
	Status int    // of the answer; 0: there was none
	Words  string // what happened, with nothing of the server's own in it
}

func (f *Failure) Error() string { return f.Words }

// Post posts a body under an id, signed with each of the secrets, and returns nil once the
// server took it. *Failure, store.ErrSilent, or that of ctx.
func (c *Courier) Post(ctx context.Context, url string, secrets []string, id string, body []byte) error {
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		var err error
		if keys[i], err = keyOf(s); err != nil {
			return err
		}
	}
	m := message{url: url, id: id, at: time.Now(), body: body}
	m.signature = signAll(keys, id, m.at, body)
	status, err := c.post(ctx, m)
	if err == nil && status/100 == 2 {
		return nil
	}
	if err == nil {
		err = answered(status)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, store.ErrSilent) {
		return err
	}
	words := Attempt{Error: classOf(err), Status: status}.Outcome()
	switch {
	case status/100 == 3:
		words += ", a redirect; name the address that it leads to"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		words += "; it does not take what is signed with this secret"
	}
	return &Failure{status, words}
}

// NewSecret makes a secret in the form of Standard Webhooks.
func NewSecret() string { return newSecret() }
