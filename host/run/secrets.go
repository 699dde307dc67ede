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

// SecretFields returns the secrets that a manifest declares.
func SecretFields(m *abi.Manifest) []abi.SecretField { return m.SecretFields() }

// Sealed reports whether a connector gets a handle for a secret instead of its value.
func Sealed(m *abi.Manifest, f abi.SecretField) bool {
	return m.Sluice != nil && f.Delivery != "plain"
}

// deliveredSecrets are the handles or values of secrets that a guest gets.
type deliveredSecrets struct {
	values map[string]string
	env    []string
}

// deliver determines for each declared secret whether the guest gets a handle or the value, and protects the
// value in both cases.
func (se *secrets) deliver() {
	p := se.plan
	for _, f := range SecretFields(p.manifest) {
		value, ok := p.Secrets[f.Name]
		switch {
		case f.OAuth != nil:
			value, ok = se.sealToken(f)
		case ok && slices.Contains(p.manifest.Sluice.ClientSecrets(), f.Name):
			se.seal(f.Name, value, nil) // the host uses it, and the guest does not get the handle
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

// protect protects a value that the guest gets in plain text.
func (se *secrets) protect(field, value string) {
	se.canary.Protect(value)
	each(se.bindings, func(b binding.Keeper) { b.Protect(field, value, redact.Forms(value)) })
}

// seal returns a new handle for a value. Network and browser replace the handle by the value in requests to the
// given destinations.
func (se *secrets) seal(field, value string, to []abi.Destination) string {
	se.canary.Protect(value)
	se.canary.ProtectWord(value)
	handle := newHandle(se.deps.Handles)
	each(se.bindings, func(b binding.Sealer) { b.Seal(field, handle, value, redact.Forms(value), to) })
	return handle
}

// sealedUses records where values were sent for the first time.
func (se *secrets) sealedUses() {
	each(se.bindings, func(b binding.Keeper) {
		b.Uses(func(field, origin, placement string) {
			e := se.journal.event("run.sealed_value_used", "succeeded",
				data{"field": field, "origin": origin, "placement": placement})
			se.commits.record(e)
		})
	})
}

// environment returns TZ and the variables that the manifest declares, nothing else.
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

// newHandle returns a handle with 128 random bits.
func newHandle(random io.Reader) string {
	return handleOf([16]byte(randomOf(random, 16)))
}

// handleOf returns the handle with the given bits.
func handleOf(b [16]byte) string {
	return "sluice-sealed-v1-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// atOwners returns the actual destinations of a declared one. If the manifest leaves the origin to the owner,
// they are all origins that the owner named for secrets of this connection, with the path prefix and placements
// of the declaration.
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

// A Token is a secret that the host obtains, such as an OAuth 2.0 access token. Its value may change during a
// run.
type Token interface {
	// Current returns the current value. refused is a value that a server rejected and that should be replaced
	// if possible, "" for none.
	Current(ctx context.Context, refused string) (string, error)
	// OnSecret makes f be called with every secret that the token has or obtains, before Current returns the value
	// that came with it. f may be called from any goroutine.
	OnSecret(f func(secret string))
}

// checkToken is checkSecrets for a secret that the host obtains.
func (p *Plan) checkToken(f abi.SecretField) error {
	if !f.Required || p.Tokens[f.Name] != nil {
		return nil
	}
	if key := f.OAuth.ClientSecret; key != "" && p.Secrets[key] == "" {
		return refuse("secret_missing",
			"secret %s is required to obtain %s; store it with sluice secret set %s %s, or give it with --secret %s=@FILE",
			key, f.Name, p.Connection.ID, key, key).with("secret", key)
	}
	return refuse("secret_missing", "secret %s is not authorized; do that with %s", f.Name,
		AuthorizeCommand(p.manifest, string(p.Connection.ID), f.Name)).
		with("secret", f.Name)
}

// AuthorizeCommand returns the command with which an owner authorizes a secret.
func AuthorizeCommand(m *abi.Manifest, connection, secret string) string {
	command := "sluice secret authorize " + m.Name() + " " + secret
	if connection != m.Name() {
		command += " --connection " + connection
	}
	return command
}

// sealToken returns a handle that stands for the value of a token at the time of a request. All secrets that are
// used to obtain the token are protected too.
func (se *secrets) sealToken(f abi.SecretField) (handle string, ok bool) {
	t := se.plan.Tokens[f.Name]
	if t == nil || !has[binding.Keeper](se.bindings) {
		return "", false
	}
	handle = newHandle(se.deps.Handles)
	each(se.bindings, func(b binding.Keeper) { b.SealCurrent(f.Name, handle, t.Current, f.Destinations) })
	var keepers []binding.Keeper // t may call the function below outside of the loop
	each(se.bindings, func(b binding.Keeper) { keepers = append(keepers, b) })
	t.OnSecret(func(secret string) {
		for _, k := range keepers {
			k.Echo(handle, redact.Forms(secret))
		}
		se.learnedValues.add(secret)
	})
	se.learn()
	return handle, true
}

// sealSessions makes the network replace session tokens in responses by handles. The handles are derived from
// one random number, so that they are the same in a replay, whatever the order of responses.
func (se *secrets) sealSessions() {
	b := se.plan.manifest.Sluice
	if b == nil || len(b.SessionTokens) == 0 || !has[binding.Keeper](se.bindings) {
		return
	}
	var places []abi.SessionToken
	for _, t := range b.SessionTokens {
		at := se.plan.atOwners(abi.Destination{Origin: t.Origin})
		if len(at) == 0 { // the owner named no server, so it may be any
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
		if value == "" { // a replay has no values
			return handle, nil
		}
		se.learnedValues.add(value)
		return handle, redact.Forms(value)
	}
	each(se.bindings, func(b binding.Keeper) { b.SealTokens(places, mint) })
}

// secrets gives the guest its secrets, as handles or in plain text, and protects them.
type secrets struct {
	*parts
	learnedValues learnedValues
}

// learn protects the secrets that came up during a call.
func (se *secrets) learn() { se.learnedValues.drain(se.canary.Protect) }

// learnedValues are secrets that came up outside of the loop, where the canary must not be accessed. They are
// protected before the guest gets the reply of the call that brought them up.
type learnedValues struct {
	mu     sync.Mutex // guards values
	values []string
}

func (l *learnedValues) add(value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values = append(l.values, value)
}

// drain removes all values and calls f with each.
func (l *learnedValues) drain(f func(string)) {
	l.mu.Lock()
	values := l.values
	l.values = nil
	l.mu.Unlock()
	for _, v := range values {
		f(v)
	}
}
