package engine

import (
	"cmp"
)

// settings are those of one check: the request's, else the connection's, else the
// defaults, each clamped (B66). Proof takes two matches at least.
func (v *verb) settings(proof bool) Settings {
	r, c := v.req.Verify, v.opt.Settings
	return Settings{
		Window: cmp.Or(r.Window, c.Window), Count: cmp.Or(r.Count, c.Count), MaxRecheck: cmp.Or(r.MaxRecheck, c.MaxRecheck),
		Interval: cmp.Or(r.Interval, c.Interval), Stale: cmp.Or(r.Stale, c.Stale),
	}.Clamped(proof)
}

// stability is what is told of a run of the routine (B78).
func stability(s Settings, r run) Stability {
	out := Stability{Attempts: r.attempts, WindowMS: s.Window.Milliseconds(), Count: r.stable, Settings: s.Info()}
	if r.age != nil {
		ms := r.age.Milliseconds()
		out.Freshness = &ms
	}
	return out
}
