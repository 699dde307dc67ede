package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
)

// A Browser is the state of a run's browser according to the log.
type Browser struct {
	SurfaceID string
	Profile   string
	// State is the latest step of the surface: requested, queued, starting, ready, probe_failed,
	// failed, released or lost.
	State    string
	Code     string // the reason of a failure
	Verified int64  // verified actions
	Failed   int64
	Denied   []DeniedHost // in the order of first refusal
	// DeniedMore counts refusals of hosts that are not in Denied.
	DeniedMore int64
}

// A DeniedHost is a host that the browser was denied.
type DeniedHost struct {
	Host  string
	Count int64
}

// Bounds of what is kept of a browser, since pages choose its hosts.
const (
	maxDenied = 50
	maxHost   = 253
	maxWord   = 128
)

// Browser returns nil for a run without a browser.
func (f *Fold) Browser() *Browser {
	if f.browser == nil {
		return nil
	}
	b := *f.browser
	b.Denied = slices.Clone(b.Denied)
	return &b
}

const surfacePrefix = "run.browser_surface_"

func (f *Fold) browserEvent(t Type, m members) {
	if f.browser == nil {
		f.browser = &Browser{}
	}
	b := f.browser
	switch t {
	case RunBrowserAction:
		b.action(m)
	case RunBrowserEgressDenied:
		b.denied(abi.Cut(m.text("host"), maxHost), max(1, m.integer("count")))
	default:
		b.surface(strings.TrimPrefix(string(t), surfacePrefix), m)
	}
}

// surface records a step. A loss has the interaction that it ended and the probe, but no surface.
func (b *Browser) surface(state string, m members) {
	b.State, b.Code = state, abi.Cut(m.text("code"), maxWord)
	b.Code = cmp.Or(b.Code, abi.Cut(m.object("browser_surface_probe").text("code"), maxWord))
	if id := m.text("surface_id"); id != "" {
		b.SurfaceID = abi.Cut(id, maxWord)
	}
	if p := m.text("profile"); p != "" {
		b.Profile = abi.Cut(p, maxWord)
	}
}

// action counts an action. A long run reports only failures, and from time to time a total, which
// is authoritative for the others.
func (b *Browser) action(m members) {
	all, summary := m.number("actions")
	switch {
	case summary:
		b.Verified = max(b.Verified, all-b.Failed)
	case m.text("verification_result") == "verified":
		b.Verified++
	default:
		b.Failed++
	}
}

func (b *Browser) denied(host string, n int64) {
	i := slices.IndexFunc(b.Denied, func(d DeniedHost) bool { return d.Host == host })
	switch {
	case i >= 0:
		b.Denied[i].Count += n
	case len(b.Denied) < maxDenied:
		b.Denied = append(b.Denied, DeniedHost{host, n})
	default:
		b.DeniedMore += n
	}
}
