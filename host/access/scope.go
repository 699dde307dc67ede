package access

import (
	"math/bits"
	"slices"
)

// A Scope is one permission of a principal. No scope implies another.
type Scope string

// The scopes of openwop, then the native ones. Lists are in this order.
const (
	ManifestRead      Scope = "manifest:read"
	RunsCreate        Scope = "runs:create"
	RunsRead          Scope = "runs:read"
	RunsCancel        Scope = "runs:cancel"
	ArtifactsRead     Scope = "artifacts:read"
	WebhooksManage    Scope = "webhooks:manage"
	ApprovalsRespond  Scope = "approvals:respond"
	ConnectorsManage  Scope = "connectors:manage"
	ConnectionsRead   Scope = "connections:read"
	ConnectionsManage Scope = "connections:manage"
	GrantsApprove     Scope = "grants:approve"
	SecretsWrite      Scope = "secrets:write"
	SchedulesManage   Scope = "schedules:manage"
	RecordsRead       Scope = "records:read"
	StateRead         Scope = "state:read"
	StateManage       Scope = "state:manage"
	SurfacesView      Scope = "surfaces:view"
	SurfacesControl   Scope = "surfaces:control"
	KeysManage        Scope = "keys:manage"
	AuditRead         Scope = "audit:read"
	MetricsRead       Scope = "metrics:read"
)

var scopes = [...]Scope{
	ManifestRead, RunsCreate, RunsRead, RunsCancel, ArtifactsRead, WebhooksManage, ApprovalsRespond,
	ConnectorsManage, ConnectionsRead, ConnectionsManage, GrantsApprove, SecretsWrite, SchedulesManage,
	RecordsRead, StateRead, StateManage, SurfacesView, SurfacesControl, KeysManage, AuditRead, MetricsRead,
}

// All returns all scopes in their order.
func All() []Scope { return slices.Clone(scopes[:]) }

// Scopes is a set of scopes.
type Scopes uint32

// Everything is the set of all scopes, which the owner has.
const Everything Scopes = 1<<len(scopes) - 1

// ScopesOf returns the set of some scopes. It returns a *ScopeError for unknown ones.
func ScopesOf(list []Scope) (Scopes, error) {
	var set Scopes
	var unknown []Scope
	for _, s := range list {
		i := slices.Index(scopes[:], s)
		if i < 0 {
			unknown = append(unknown, s)
			continue
		}
		set |= 1 << i
	}
	if unknown != nil {
		return 0, &ScopeError{Scopes: unknown, Unknown: true}
	}
	return set, nil
}

// Has reports whether a scope is in the set. It is false for unknown scopes.
func (s Scopes) Has(scope Scope) bool {
	i := slices.Index(scopes[:], scope)
	return i >= 0 && s&(1<<i) != 0
}

// List returns the scopes in the order of All.
func (s Scopes) List() []Scope {
	list := make([]Scope, 0, bits.OnesCount32(uint32(s)))
	for i, scope := range scopes {
		if s&(1<<i) != 0 {
			list = append(list, scope)
		}
	}
	return list
}
