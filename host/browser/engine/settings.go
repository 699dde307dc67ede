package engine

import (
	"cmp"

	"github.com/sluicehost/sluice/host/browser/action"
)

// settings are those of one check: the request's, else the connection's, else the
// defaults, each clamped (B66). Proof takes two matches at least.
func (v *verb) settings(proof bool) action.Settings {
	r, c := v.req.Verify, v.opt.Settings
	return action.Settings{
		Window: cmp.Or(r.Window, c.Window), Count: cmp.Or(r.Count, c.Count), MaxRecheck: cmp.Or(r.MaxRecheck, c.MaxRecheck),
		Interval: cmp.Or(r.Interval, c.Interval), Stale: cmp.Or(r.Stale, c.Stale),
	}.Clamped(proof)
}

// stability is what is told of a run of the routine (B78).
func stability(s action.Settings, r run) action.Stability {
	out := action.Stability{Attempts: r.attempts, WindowMS: s.Window.Milliseconds(), Count: r.stable, Settings: s.Info()}
	if r.age != nil {
		ms := r.age.Milliseconds()
		out.Freshness = &ms
	}
	return out
}
