package run

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
)

// SecretFields lists the secrets a manifest declares.
func SecretFields(m *abi.Manifest) []abi.SecretField { return m.SecretFields() }

// Sealed reports whether a connector gets a handle for a secret instead of its
// value.
func Sealed(m *abi.Manifest, f abi.SecretField) bool {
	return m.Sluice != nil && f.Delivery != "plain"
}

// deliveredSecrets are what a guest gets of its secrets: handles or values.
type deliveredSecrets struct {
	values map[string]string
	env    []string
}

// deliver decides per declared secret between handle and value
// and registers both kinds with the canary.
func (se *secrets) deliver() {
	p := se.plan
	for _, f := range SecretFields(p.manifest) {
		value, ok := p.Secrets[f.Name]
		switch {
		case f.OAuth != nil:
			value, ok = se.sealToken(f)
		case ok && slices.Contains(p.manifest.Sluice.ClientSecrets(), f.Name):
			se.seal(f.Name, value, nil) // the host uses it, and nobody gets its handle
			ok = false
		}
		if !ok {
			continue
		}
		switch {
		case f.OAuth != nil: // sealed already
		case Sealed(p.manifest, f):
			value = se.seal(f.Name, value, slices.Concat(f.Destinations, p.Connection.Approved.Destinations[f.Name]))
		default:
			se.protect(f.Name, value)
		}
		if p.delivered.values == nil {
			p.delivered.values = map[string]string{}
		}
		p.delivered.values[f.Name] = value
		for _, name := range f.Env {
			p.delivered.env = append(p.delivered.env, name+"="+value)
		}
	}
	se.sealSessions()
}

// protect remembers a value that the guest gets in plain.
func (se *secrets) protect(field, value string) {
	se.canary.Protect(value)
	each(se.bindings, func(b binding.Keeper) { b.Protect(field, value, redact.Forms(value)) })
}

// seal returns a new handle for a value, which network and browser put where it
// may go.
func (se *secrets) seal(field, value string, to []abi.Destination) string {
	se.canary.Protect(value)
	se.canary.ProtectWord(value)
	handle := newHandle(se.deps.Handles)
	each(se.bindings, func(b binding.Sealer) { b.Seal(field, handle, value, redact.Forms(value), to) })
	return handle
}

// sealedUses reports where values were sent for the first time.
func (se *secrets) sealedUses() {
	each(se.bindings, func(b binding.Keeper) {
		b.Uses(func(field, origin, placement string) {
			e := se.journal.event("run.sealed_value_used", "succeeded", data{"field": field, "origin": origin, "placement": placement})
			se.commits.record(e)
		})
	})
}

// environment is TZ and the names the manifest declares, nothing else.
func (p *Plan) environment() []string {
	env := append([]string{"TZ=UTC"}, p.delivered.env...)
	if p.manifest.Sluice == nil || p.manifest.Sluice.Settings == nil {
		return env
	}
	config, err := strictjson.Parse(p.config, strictjson.ParseOptions{})
	if err != nil {
		return env
	}
	for _, s := range p.manifest.Sluice.Settings.Properties {
		v, _ := config.Member(s.Name)
		if v.Absent() {
			continue
		}
		text, ok := v.Text()
		if !ok {
			text = string(v.Raw)
		}
		if strings.IndexByte(text, 0) >= 0 {
			continue
		}
		for _, name := range s.Env {
			env = append(env, name+"="+text)
		}
	}
	return env
}

// newHandle makes a handle: 128 random bits, no padding.
func newHandle(random io.Reader) string {
	return handleOf([16]byte(randomOf(random, 16)))
}

// handleOf is a handle with these bits.
func handleOf(b [16]byte) string {
	return "sluice-sealed-v1-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// atOwners is a destination of an answer where it really is: one that the manifest
// leaves to the owner is at each origin that they named for a secret of this
// connection, with the placements that the manifest asks for.
func (p *Plan) atOwners(d abi.Destination) (out []abi.Destination) {
	if d.Origin != abi.OwnerOrigin {
		return []abi.Destination{d}
	}
	for _, named := range p.Connection.Approved.Destinations {
		for _, to := range named {
			if !slices.ContainsFunc(out, func(o abi.Destination) bool { return o.Origin == to.Origin }) {
				out = append(out, abi.Destination{Origin: to.Origin, PathPrefix: d.PathPrefix, Placements: d.Placements})
			}
		}
	}
	return out
}

// A Token is a secret that the host obtains, such as an access token of OAuth
// 2.0: its value changes while a run lasts.
type Token interface {
	// Current returns the value of the moment, another than the one that a server
	// refused, if there is one; refused is "" for none.
	Current(ctx context.Context, refused string) (string, error)
	// Tell has f told of every secret that it has or gets, before Current returns
	// what came with it. f may be called from any goroutine.
	Tell(f func(secret string))
}

// checkToken is checkSecrets for a secret that the host obtains.
func (p *Plan) checkToken(f abi.SecretField) error {
	if !f.Required || p.Tokens[f.Name] != nil {
		return nil
	}
	if key := f.OAuth.ClientSecret; key != "" && p.Secrets[key] == "" {
		return refuse("secret_missing", "secret %s is required to obtain %s; store it with sluice secret set %s %s, or give it with --secret %s=@FILE",
			key, f.Name, p.Connection.ID, key, key).with("secret", key)
	}
	return refuse("secret_missing", "secret %s is not authorized; do that with %s", f.Name, AuthorizeCommand(p.manifest, string(p.Connection.ID), f.Name)).
		with("secret", f.Name)
}

// AuthorizeCommand is what an owner says to authorize a secret.
func AuthorizeCommand(m *abi.Manifest, connection, secret string) string {
	command := "sluice secret authorize " + m.Name() + " " + secret
	if connection != m.Name() {
		command += " --connection " + connection
	}
	return command
}

// sealToken returns a handle for whatever a token is when a request is made.
// Everything that was used to obtain it is protected as well.
func (se *secrets) sealToken(f abi.SecretField) (handle string, ok bool) {
	t := se.plan.Tokens[f.Name]
	if t == nil || !has[binding.Keeper](se.bindings) {
		return "", false
	}
	handle = newHandle(se.deps.Handles)
	each(se.bindings, func(b binding.Keeper) { b.SealCurrent(f.Name, handle, t.Current, f.Destinations) })
	var keepers []binding.Keeper // it may be told beside the loop
	each(se.bindings, func(b binding.Keeper) { keepers = append(keepers, b) })
	t.Tell(func(secret string) {
		for _, k := range keepers {
			k.Echo(handle, redact.Forms(secret))
		}
		se.learned.add(secret)
	})
	se.learn()
	return handle, true
}

// sealSessions has the network keep session tokens of answers from the guest. Their
// handles are drawn from one number, so that a replay has the same whatever comes
// first.
func (se *secrets) sealSessions() {
	b := se.plan.manifest.Sluice
	if b == nil || len(b.SessionTokens) == 0 || !has[binding.Keeper](se.bindings) {
		return
	}
	var places []abi.SessionToken
	for _, t := range b.SessionTokens {
		at := se.plan.atOwners(abi.Destination{Origin: t.Origin})
		if len(at) == 0 { // the owner named no server: it may be any
			at = []abi.Destination{{}}
		}
		for _, d := range at {
			t.Origin = d.Origin
			places = append(places, t)
		}
	}
	base := [16]byte(randomOf(se.deps.Handles, 16))
	mint := func(field string, n int, value string) (string, [][]byte) {
		sum := sha256.Sum256(fmt.Appendf(base[:len(base):len(base)], "%s/%d", field, n))
		handle := handleOf([16]byte(sum[:16]))
		if value == "" { // a replay has none
			return handle, nil
		}
		se.learned.add(value)
		return handle, redact.Forms(value)
	}
	each(se.bindings, func(b binding.Keeper) { b.SealTokens(places, mint) })
}

// secrets gives the guest its secrets, as handles or in plain, and protects them.
type secrets struct {
	*parts
	learned learned
}

// learn protects the secrets that came up in a call.
func (se *secrets) learn() { se.learned.each(se.canary.Protect) }

// learned are secrets that came up beside the loop, where the canary is not to
// be touched. They reach it before the reply of the call that brought them up
// reaches the guest.
type learned struct {
	mu     sync.Mutex // guards values
	values []string
}

func (l *learned) add(value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values = append(l.values, value)
}

// each takes what there is.
func (l *learned) each(f func(string)) {
	l.mu.Lock()
	values := l.values
	l.values = nil
	l.mu.Unlock()
	for _, v := range values {
		f(v)
	}
}
