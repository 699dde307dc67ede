package store

import (
	"context"
	"time"
)

// Optional methods of drivers beside Store. Each function accepts any store, and has a
// default for one without the method.

// Stalled returns why s delays commits, as ErrNoSpace with what is needed, or nil. It does
// not block.
func Stalled(s any) error {
	if s, ok := s.(interface{ Stalled() error }); ok {
		return s.Stalled()
	}
	return nil
}

// Damage returns the damage found when s was opened, or nil. A damaged store is read-only.
func Damage(s any) *DamageError {
	if s, ok := s.(interface{ Damage() *DamageError }); ok {
		return s.Damage()
	}
	return nil
}

// MemoryLimit returns the soft memory limit that the Go runtime of a process with s should
// have, or 0 for none.
func MemoryLimit(s any) int64 {
	if s, ok := s.(interface{ MemoryLimit() int64 }); ok {
		return s.MemoryLimit()
	}
	return 0
}

// Now returns the time of the server if hosts share s, whose clocks may differ, else that
// of this host.
func Now(s any) time.Time {
	if s, ok := s.(interface{ Now() time.Time }); ok {
		return s.Now()
	}
	return time.Now()
}

// A Weakness is a risk to stored data, present or future.
type Weakness struct {
	Detail string
	Remedy string // one thing to do
}

// Polling returns why s polls for changes of other hosts instead of being notified, or nil.
// It does not block.
func Polling(s any) *Weakness {
	if s, ok := s.(interface{ Polling() *Weakness }); ok {
		return s.Polling()
	}
	return nil
}

// Weaknesses returns the risks of where s keeps data.
func Weaknesses(ctx context.Context, s any) ([]Weakness, error) {
	if s, ok := s.(interface {
		Weaknesses(context.Context) ([]Weakness, error)
	}); ok {
		return s.Weaknesses(ctx)
	}
	return nil, nil
}
