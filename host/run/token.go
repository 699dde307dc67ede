package run

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
)

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

// checkToken is R25 for a secret that the host obtains.
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
	if t == nil || se.deps.Network == nil {
		return "", false
	}
	handle = newHandle(se.deps.Handles)
	se.deps.Network.SealCurrent(f.Name, handle, t.Current, f.Destinations)
	t.Tell(func(secret string) {
		se.deps.Network.Echo(handle, redact.Forms(secret))
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
	if b == nil || len(b.SessionTokens) == 0 || se.deps.Network == nil {
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
	var base [16]byte
	if _, err := io.ReadFull(se.deps.Handles, base[:]); err != nil {
		panic("no random bytes: " + err.Error()) // as in newHandle
	}
	se.deps.Network.SealTokens(places, func(field string, n int, value string) (string, [][]byte) {
		sum := sha256.Sum256(fmt.Appendf(base[:len(base):len(base)], "%s/%d", field, n))
		handle := handleOf([16]byte(sum[:16]))
		if value == "" { // a replay has none
			return handle, nil
		}
		se.learned.add(value)
		return handle, redact.Forms(value)
	})
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
