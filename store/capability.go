package store

import (
	"context"
	"time"
)

// What a driver may tell beside Store. Each function takes any store, and has an
// answer for one that does not tell.

// Stalled says why s keeps commits waiting, as ErrNoSpace with what is needed; nil
// while it does not, or does not tell. It does not block.
func Stalled(s any) error {
	if s, ok := s.(interface{ Stalled() error }); ok {
		return s.Stalled()
	}
	return nil
}

// Damage is what was found wrong with s when it was opened, nil when nothing was.
// A damaged store is read-only.
func Damage(s any) *DamageError {
	if s, ok := s.(interface{ Damage() *DamageError }); ok {
		return s.Damage()
	}
	return nil
}

// MemoryLimit is how much memory the Go runtime of a process with s should use
// before it collects harder; 0 when s does not mind.
func MemoryLimit(s any) int64 {
	if s, ok := s.(interface{ MemoryLimit() int64 }); ok {
		return s.MemoryLimit()
	}
	return 0
}

// Now is the time that what s keeps goes by: of its server where hosts share it, for their clocks differ.
func Now(s any) time.Time {
	if s, ok := s.(interface{ Now() time.Time }); ok {
		return s.Now()
	}
	return time.Now()
}

// A Weakness is something about a store that puts data at risk, or will.
type Weakness struct {
	Detail string
	Remedy string // one thing to do
}

// Polling says that s looks for what other hosts did at intervals, because it is not woken; nil while
// it is, or does not tell. It does not block.
func Polling(s any) *Weakness {
	if s, ok := s.(interface{ Polling() *Weakness }); ok {
		return s.Polling()
	}
	return nil
}

// Weaknesses asks s what is weak about where it keeps data; none when it does not tell.
func Weaknesses(ctx context.Context, s any) ([]Weakness, error) {
	if s, ok := s.(interface {
		Weaknesses(context.Context) ([]Weakness, error)
	}); ok {
		return s.Weaknesses(ctx)
	}
	return nil, nil
}
