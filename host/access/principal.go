package access

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Owner is the id of the principal of sessions and of the local socket.
const Owner = "owner"

// How a principal came in.
const (
	REST = "rest"
	UI   = "ui"
	MCP  = "mcp"
)

// A Principal is who asks, and what they may. It holds no credential. It is
// not changed once it was made, and may be kept.
type Principal struct {
	ID     string // key:<keyId>, assistant:<name> or owner
	Scopes Scopes
	// Connections are the only ones that it sees; nil is all.
	Connections []store.ConnectionID
	// Test: only conformance connectors and connections in mode test.
	Test      bool
	Transport string // REST, UI or MCP
	Address   string // remote address, "" for the local socket
	RequestID string
	// ExpiresAt is when its credential ends at the latest; zero is never.
	ExpiresAt time.Time

	credential string // id of the key or of the session; "" for the local socket
}

// Allows reports whether it has a scope.
func (p *Principal) Allows(s Scope) bool { return p.Scopes.Has(s) }

// SeesConnection reports whether it may know of a connection. What it may not
// know of is 404.
func (p *Principal) SeesConnection(id store.ConnectionID) bool {
	return p.Connections == nil || slices.Contains(p.Connections, id)
}

// Restricted reports whether there are connections that it may not know of or
// use.
func (p *Principal) Restricted() bool { return p.Connections != nil || p.Test }

// Manages reports whether it may list and revoke a key: one that could be of its
// making. What a restricted key may not manage is 404.
func (p *Principal) Manages(k Key) bool {
	if p.Test && k.Mode != Test || p.Connections != nil && k.ConnectionIDs == nil {
		return false
	}
	return !slices.ContainsFunc(k.ConnectionIDs, func(id store.ConnectionID) bool { return !p.SeesConnection(id) })
}

// Session reports whether it came with the cookie of an owner session.
func (p *Principal) Session() bool { return p.ID == Owner && p.credential != "" }

// Local reports whether it came by the local socket: the owner, on this machine.
func (p *Principal) Local() bool { return p.ID == Owner && p.credential == "" }

// SessionName returns the name of the owner session it came with, or "" if there is none. It opens
// nothing.
func (p *Principal) SessionName() string {
	if !p.Session() {
		return ""
	}
	return p.credential
}

// AssistantPrefix is how the ids of assistants begin.
const AssistantPrefix = "assistant:"

// OfAssistant returns an assistant, which has no scope.
func OfAssistant(name string) *Principal {
	return &Principal{ID: AssistantPrefix + name, Connections: []store.ConnectionID{}, Transport: MCP}
}

// OfSocket returns the owner at the local socket, whose file mode is the credential.
func OfSocket(requestID string) *Principal {
	return &Principal{ID: Owner, Scopes: Everything, Transport: REST, RequestID: requestID}
}

// Check looks again whether p may still do what it was let in for. It is for
// whatever takes long, at every heartbeat. ErrUnauthenticated, ErrKeyExpired,
// ErrKeyRevoked or ErrForbidden; any other error is the store's, and says nothing
// of p.
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
