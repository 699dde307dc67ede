package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// An answer that the manifest sends to the owner's server goes where the owner
// sent a secret of the connection, with the manifest's placements, and nowhere
// without one.
func TestAtOwners(t *testing.T) {
	fill := abi.Destination{Origin: abi.OwnerOrigin, Placements: []string{"browser_fill"}}
	fixed := abi.Destination{Origin: "https://a.test", Placements: []string{"body"}}
	p := &Plan{}
	if got := p.atOwners(fill); got != nil {
		t.Errorf("the owner named no server: %v", got)
	}
	p.Connection.Approved = store.Approved{Destinations: map[string][]abi.Destination{
		"password": {{Origin: "https://bank.test", Placements: []string{"header:Authorization"}}},
		"pin":      {{Origin: "https://bank.test", PathPrefix: "/pin", Placements: []string{"body"}}},
	}}
	if diff := cmp.Diff([]abi.Destination{{Origin: "https://bank.test", Placements: []string{"browser_fill"}}},
		p.atOwners(fill)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]abi.Destination{fixed}, p.atOwners(fixed)); diff != "" {
		t.Error(diff)
	}
}
