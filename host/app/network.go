package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// bindings gives runs access to what their connections may use outside of the sandbox: the network, a browser,
// directories.
type bindings struct {
	*directory
	pace *egress.RateLimiter // shared by all runs of this process
}

// CheckHost checks the form of a host that the owner names: [http://|https://]HOST[:PORT].
func CheckHost(text string) error {
	_, err := egress.ParseEntry(text)
	return err
}

// TokenAsks lists the servers from which the host obtains a secret, and whether they are approved.
func TokenAsks(s abi.SecretField, a store.Approved) []binding.Ask {
	var out []binding.Ask
	for _, name := range network.TokenHosts(s.OAuth) {
		ask := binding.Ask{Words: "have the host reach " + abi.Clean(name) + " for the secret " + s.Name}
		ask.Granted, ask.Flag = network.ServerApproval(a, name)
		out = append(out, ask)
	}
	return out
}

// policyOf returns the policy for what an owner approved.
func policyOf(approved []string) (*egress.Policy, error) {
	p, err := egress.PolicyOf(approved)
	if err != nil {
		return nil, refusal("invalid_request", err)
	}
	return p, nil
}

// guestPolicy returns the policy for what a connector itself may reach.
func guestPolicy(m *abi.Manifest, c store.Connection) (*egress.Policy, error) {
	return policyOf(network.GuestHosts(m, c.Approved.Hosts))
}

// network returns the network binding of one run, nil if the module cannot use it. reserved are the hosts that
// only the host itself reaches, for tokens.
func (h *bindings) network(q RunRequest, plan *run.Plan, reserved *egress.Policy, obtained *tokens,
	t *requestLogger) (binding.Binding, error) {
	if q.Replay != nil {
		return network.Binding{Session: network.NewSession(egress.NewReplayer(q.Replay.recording))}, nil
	}
	if q.Record == nil && !q.Connector.Module.Uses(abi.ModuleNetwork) && !q.Connector.ByLines(abi.BindingNetwork) {
		return nil, nil
	}
	p, err := guestPolicy(q.Connector.Manifest, plan.Connection)
	if err != nil {
		return nil, err
	}
	var own *egress.RateLimiter
	if r := q.Connector.Manifest.Bindings[abi.BindingNetwork].Rate; r != (abi.Rate{}) {
		own = egress.NewRateLimiter(h.Options.RateLimit.Declared(r))
	}
	c, err := h.client(egress.Options{Policy: p, Reserved: reserved, ConnectorLimiter: own}, t)
	if err != nil {
		return nil, err
	}
	var via network.Exchanger = c
	if q.Record != nil {
		if via, err = q.Record.begin(c, q, plan); err != nil {
			return nil, err
		}
	}
	return ownSession{network.Binding{Session: network.NewSession(via)}, obtained, h.requests}, nil
}

// OwnerDestinations returns where a secret may be sent at the server origin that an owner names: the manifest's
// destinations for abi.OwnerOrigin, at this origin. It is an error if the manifest binds the secret to its own
// servers.
func OwnerDestinations(m *abi.Manifest, secret, origin string) ([]abi.Destination, error) {
	fields := run.SecretFields(m)
	i := slices.IndexFunc(fields, func(f abi.SecretField) bool { return f.Name == secret })
	if i < 0 {
		return nil, errors.New("the connector asks for no secret of that name")
	}
	origin, err := egress.SealedOrigin(origin)
	if err != nil {
		return nil, fmt.Errorf("want an origin, https://HOST[:PORT], or http:// for this machine: %w", err)
	}
	var out []abi.Destination
	for _, d := range fields[i].Destinations {
		if d.Origin == abi.OwnerOrigin {
			d.Origin = origin
			out = append(out, d)
		}
	}
	if out == nil {
		return nil, errors.New("the connector's manifest leaves no server of that secret to you")
	}
	return out, nil
}

// client returns a network client of this host, whose requests t logs.
func (h *bindings) client(o egress.Options, t *requestLogger) (*egress.Client, error) {
	o.RateLimiter, o.Audit = h.pace, t.hop
	c, err := egress.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("open network: %w", err)
	}
	return c, nil
}

// A requestLogger writes the requests of one run to the request log, and requests that the policy refused to the
// audit log too.
type requestLogger struct {
	dir        *directory
	connection store.ConnectionID
	run        store.RunID // set before the run starts
}

// hop logs one request. Each redirect is a request.
func (t *requestLogger) hop(n egress.Hop) {
	log := t.dir.Options.Log
	log.Info("network_request", "run", t.run, "connection", t.connection, "method", n.Method, "origin",
		n.Origin, "path", n.Path,
		"status", n.Status, "refused", n.Refused, "sent", n.Sent, "received", n.Received, "took", n.Took)
	if t.dir.requests == nil {
		return
	}
	err := t.dir.requests.Add(audit.Request{
		At: audit.Time{Time: n.Began}, Run: string(t.run), Connection: string(t.connection), Method: n.Method,
		Origin: n.Origin, Path: n.Path, Status: n.Status, Refused: n.Refused, Sent: n.Sent, Received: n.Received,
		Millis: n.Took.Milliseconds(), Family: n.Family,
	})
	if strings.HasSuffix(n.Refused, "_denied") {
		err = errors.Join(err, t.dir.refusals.Refused(string(t.connection), n.Refused, string(t.run)))
	}
	if err != nil {
		log.Error("request_not_logged", "run", t.run, "error", err)
	}
}

// An ownSession is the network binding of one run, with the tokens that the host obtains for it. Closing it
// flushes the request log.
type ownSession struct {
	network.Binding
	tokens   *tokens
	requests *audit.Requests
}

// Close implements binding.Binding.
func (s ownSession) Close(ctx context.Context) error {
	err := s.Binding.Close(ctx) // first the guest's requests, which may wait for a token
	s.tokens.Close()
	if s.requests != nil {
		err = errors.Join(err, s.requests.Flush())
	}
	return err
}
