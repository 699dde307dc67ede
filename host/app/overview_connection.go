package app

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// lastRun returns the newest finished run, nil for none.
func (v *overview) lastRun(ctx context.Context, id store.ConnectionID) (*host.LastRun, error) {
	runs, err := v.from.Store.Runs(ctx, id, "", 2) // at most one is active
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(runs, func(r store.Run) bool { return r.FinishedAt != nil })
	if i < 0 {
		return nil, nil
	}
	r := runs[i]
	out := &host.LastRun{RunID: string(r.ID), Status: r.Status, StartedAt: r.StartedAt, FinishedAt: *r.FinishedAt}
	var result struct {
		Reason  *string `json:"terminal_reason"`
		Outcome string  `json:"outcome"`
		Flushed int64   `json:"records_flushed"`
	}
	if len(r.Result) > 0 && json.Unmarshal(r.Result, &result) == nil {
		out.Records, out.Outcome = result.Flushed, result.Outcome
		if result.Reason != nil {
			out.TerminalReason = *result.Reason
		}
	}
	return out, nil
}

// ownGrant is the id of a grant without one: given at the command line without bounds, or before grants had ids.
const ownGrant = "gra_own"

func grantRef(g *store.Grant) string {
	if g == nil || g.Ref == "" {
		return ownGrant
	}
	return g.Ref
}

// shownGrant returns the API's document of a connection's grant, nil before anybody approved one. now is
// the time by the clock of the store.
func shownGrant(c store.Connection, now time.Time) *host.Grant {
	g := c.Grant
	if unapproved(g) {
		return nil
	}
	out := &host.Grant{GrantID: grantRef(g), Scope: json.RawMessage("null"), AccessMode: "continuous", Status: "active",
		ApprovedBy: "owner", ApprovedAt: c.CreatedAt}
	if g == nil {
		return out
	}
	if len(g.Scope) > 0 {
		out.Scope = g.Scope
	}
	out.AccessMode, out.Status, out.ExpiresAt = g.AccessMode, g.Status, g.ExpiresAt
	if code := g.Fault(now); code != "" {
		out.Status = code[len("grant_"):]
	}
	if g.ApprovedBy != "" {
		out.ApprovedBy = g.ApprovedBy
	}
	if !g.ApprovedAt.IsZero() {
		out.ApprovedAt = g.ApprovedAt
	}
	return out
}

// unapproved reports whether a grant is the placeholder of a connection that was made over the API or the
// dashboard and that nobody has approved yet.
func unapproved(g *store.Grant) bool { return g != nil && g.Status == "invalid" && g.Ref == "" }

// shownBindings returns the approved bindings, not the requested ones.
func shownBindings(c store.Connection, m *abi.Manifest) host.Bindings {
	out := host.Bindings{Destinations: c.Approved.Destinations, PlainAcknowledged: c.Approved.Plain}
	Kinds.Show(c, m, &out)
	asked := false
	if m != nil {
		_, asked = m.Bindings[abi.BindingInteractive]
	}
	if asked || c.Approved.NoInteractive {
		allowed := !c.Approved.NoInteractive
		out.Interactive = &allowed
	}
	return out
}

// secrets returns the secrets that the manifest requests, and whether they are set. With requested, destinations
// are those of the manifest, including servers that it leaves to the owner; otherwise they are those to which
// the secret may be sent.
func (v *overview) secrets(c store.Connection, m *abi.Manifest, requested bool) []host.Secret {
	out := []host.Secret{}
	if m == nil {
		return out
	}
	for _, f := range run.SecretFields(m) {
		s := host.Secret{Name: f.Name, Label: f.Label, Required: f.Required, Delivery: "plain",
			Destinations: []abi.Destination{}, OAuth: f.OAuth != nil}
		if run.Sealed(m, f) {
			s.Delivery = "sealed"
		}
		for _, d := range f.Destinations {
			if requested || d.Origin != abi.OwnerOrigin {
				s.Destinations = append(s.Destinations, d)
			}
		}
		if !requested {
			for _, d := range c.Approved.Destinations[f.Name] {
				if !slices.ContainsFunc(s.Destinations, func(o abi.Destination) bool { return sameDestination(o, d) }) {
					s.Destinations = append(s.Destinations, d)
				}
			}
		}
		if at, set := v.set[c.ID][f.Name]; set {
			s.Set, s.SetAt = true, &at
		}
		out = append(out, s)
	}
	return out
}

func sameDestination(a, b abi.Destination) bool {
	return a.Origin == b.Origin && a.PathPrefix == b.PathPrefix && slices.Equal(a.Placements, b.Placements)
}
