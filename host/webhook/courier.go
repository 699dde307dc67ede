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

// A Courier posts signed bodies for other packages by the rules of webhooks: only over TLS to public addresses, which
// are checked at every connection, without following redirects or keeping anything of an answer but its status. It is
// safe for concurrent use.
type Courier struct {
	gate *gate
	post func(context.Context, message) (int, error)
	now  func() time.Time
}

// NewCourier returns a courier. It uses the options Forbidden, AllowLoopback, Alive, Resolver and Version, and the clock
// of Store. Without Forbidden it only posts to loopback addresses, and that only if they are allowed.
func NewCourier(o Options) *Courier {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Forbidden == nil {
		o.Forbidden = func(netip.Addr) string { return "nothing is posted by this host" }
	}
	g := &gate{o.Resolver, o.Forbidden, o.AllowLoopback, o.Alive}
	return &Courier{gate: g, post: newPoster(g, "Sluice/"+o.Version, o.tls).post, now: o.now}
}

// Check returns a *Refusal if a URL can never be posted to, or a secret is unsuitable for signing. It does not use the
// network.
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

// Now returns the time by which what is posted is signed: that of the store.
func (c *Courier) Now() time.Time { return c.now() }

// Reach resolves the host name of a URL. It returns a *Refusal if posting there is not allowed.
func (c *Courier) Reach(ctx context.Context, url string) error { return c.gate.accept(ctx, url) }

// A Failure reports that the server did not accept a post.
type Failure struct {
	Status int    // of the answer; 0 if there was none
	Words  string // what happened, without any text of the server
}

func (f *Failure) Error() string { return f.Words }

// Post posts a body under an id, signed with each secret, and returns nil once the server has accepted it. Otherwise it
// returns a *Failure, *Refusal, store.ErrSilent or ctx's error.
func (c *Courier) Post(ctx context.Context, url string, secrets []string, id string, body []byte) error {
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		var err error
		if keys[i], err = keyOf(s); err != nil {
			return err
		}
	}
	m := message{url: url, id: id, at: c.now(), body: body}
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

// NewSecret returns a new secret in the format of Standard Webhooks.
func NewSecret() string { return newSecret() }
