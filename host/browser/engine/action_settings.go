package engine

import "time"

// DefaultSettings are those of section 4.1.
var DefaultSettings = Settings{Window: time.Second, Count: 2, MaxRecheck: 3, Interval: 100 * time.Millisecond, Stale: 500 * time.Millisecond}

// Clamped moves every setting to the nearest bound; one that is 0 becomes the default
// (B66). Proof after an action needs two matches at least.
func (s Settings) Clamped(proof bool) Settings {
	least := 1
	if proof {
		least = 2
	}
	d := DefaultSettings
	return Settings{
		Window:     clamp(or(s.Window, d.Window), 500*time.Millisecond, 1500*time.Millisecond),
		Count:      clamp(or(s.Count, d.Count), least, 5),
		MaxRecheck: clamp(or(s.MaxRecheck, d.MaxRecheck), 1, 10),
		Interval:   clamp(or(s.Interval, d.Interval), 100*time.Millisecond, 200*time.Millisecond),
		Stale:      clamp(or(s.Stale, d.Stale), 300*time.Millisecond, 800*time.Millisecond),
	}
}

// Info are the settings as results echo them.
func (s Settings) Info() SettingsInfo {
	return SettingsInfo{s.Window.Milliseconds(), s.Count, s.MaxRecheck, s.Interval.Milliseconds(), s.Stale.Milliseconds()}
}

func clamp[T ~int | ~int64 | ~float64](v, least, most T) T { return min(max(v, least), most) }

func or[T comparable](v, instead T) T {
	var zero T
	if v == zero {
		return instead
	}
	return v
}
