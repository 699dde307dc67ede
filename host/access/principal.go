package access

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Owner is the principal id of sessions and of the local socket.
const Owner = "owner"

// Transports of principals.
const (
	REST = "rest"
	UI   = "ui"
	MCP  = "mcp"
)

// A Principal is an authenticated caller with its permissions. It contains no credential, is
// immutable and may be retained.
type Principal struct {
	ID     string // key:<keyId>, assistant:<name> or owner
	Scopes Scopes
	// Connections are the only ones visible to it; nil means all.
	Connections []store.ConnectionID
	// Test limits it to conformance connectors and connections in mode test.
	Test      bool
	Transport string // REST, UI or MCP
	Address   string // remote address; "" for the local socket
	RequestID string
	// ExpiresAt is when its credential expires; zero means never.
	ExpiresAt time.Time

	credential string // id of the key or of the session; "" for the local socket
}

// Allows reports whether it has a scope.
func (p *Principal) Allows(s Scope) bool { return p.Scopes.Has(s) }

// SeesConnection reports whether it may know of a connection. Other connections are 404.
func (p *Principal) SeesConnection(id store.ConnectionID) bool {
	return p.Connections == nil || slices.Contains(p.Connections, id)
}

// Restricted reports whether there are connections that it may not know of or use.
func (p *Principal) Restricted() bool { return p.Connections != nil || p.Test }

// Manages reports whether it may list and revoke a key, which must be one that it could have
// created. Other keys are 404.
func (p *Principal) Manages(k Key) bool {
	if p.Test && k.Mode != Test || p.Connections != nil && k.ConnectionIDs == nil {
		return false
	}
	return !slices.ContainsFunc(k.ConnectionIDs, func(id store.ConnectionID) bool { return !p.SeesConnection(id) })
}

// Session reports whether it was authenticated by the cookie of an owner session.
func (p *Principal) Session() bool { return p.ID == Owner && p.credential != "" }

// Local reports whether it is the owner at the local socket of this machine.
func (p *Principal) Local() bool { return p.ID == Owner && p.credential == "" }

// SessionName returns the name of its owner session, or "" if it has none. The name is no
// credential.
func (p *Principal) SessionName() string {
	if !p.Session() {
		return ""
	}
	return p.credential
}

// AssistantPrefix is the prefix of assistants' ids.
const AssistantPrefix = "assistant:"

// OfAssistant returns the principal of an assistant, which has no scopes.
func OfAssistant(name string) *Principal {
	return &Principal{ID: AssistantPrefix + name, Connections: []store.ConnectionID{}, Transport: MCP}
}

// OfSocket returns the principal of the owner at the local socket, which is protected by its file
// mode.
func OfSocket(requestID string) *Principal {
	return &Principal{ID: Owner, Scopes: Everything, Transport: REST, RequestID: requestID}
}

// Check checks whether p may still use scope s. Long-lived requests call it at every heartbeat. It
// returns ErrUnauthenticated, ErrKeyExpired, ErrKeyRevoked or ErrForbidden; any other error is the
// store's and says nothing about p.
func (a *Access) Check(ctx context.Context, p *Principal, s Scope) error {
	switch {
	case p.credential == "":
		return nil
	case p.ID == Owner:
		_, err := a.Sessions.load(ctx, p.credential, false)
		return err
	}
	now, err := a.Keys.principal(ctx, p.credential, nil)
	if err != nil {
		return err
	}
	if s != "" && !now.Allows(s) {
		return ErrForbidden
	}
	return nil
}
