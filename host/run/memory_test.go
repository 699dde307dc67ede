package run

import (
	"slices"
	"testing"
	"time"
)

// TestMemory: what is kept of a run's memory is bounded however long it lasts, and keeps
// its peaks where they were.
func TestMemory(t *testing.T) {
	var m Memory
	if m.add(time.Second, 0); m.copied() != nil {
		t.Error("nothing is something")
	}
	m.add(600*time.Millisecond, 5)
	m.add(100*time.Millisecond, 7) // late
	m.add(1100*time.Millisecond, 3)
	if want := []uint64{7, 0, 5, 5, 5}; m.Every != 250 || !slices.Equal(m.Bytes, want) {
		t.Errorf("%+v, want %v", m, want)
	}
	m = Memory{}
	const length = 10 * time.Hour
	for at := time.Duration(0); at < length; at += time.Second {
		bytes := uint64(1 << 20)
		if at > length/2 && at < length/2+10*time.Second {
			bytes = 9 << 20
		}
		m.add(at, bytes)
	}
	if n := len(m.Bytes); n > maxParts || n < maxParts/2 ||
		time.Duration(n)*time.Duration(m.Every)*time.Millisecond < length {
		t.Errorf("%d parts of %d ms", n, m.Every)
	}
	peak := slices.Index(m.Bytes, 9<<20)
	if at := time.Duration(peak) * time.Duration(m.Every) * time.Millisecond; peak < 0 || at > length/2 ||
		at < length/2-time.Duration(m.Every)*time.Millisecond {
		t.Errorf("the peak is at %s", at)
	}
	m.add(1000*24*time.Hour, 1)
	if len(m.Bytes) > maxParts {
		t.Errorf("%d parts", len(m.Bytes))
	}
	kept := m.copied()
	m.add(1000*24*time.Hour, 99<<20)
	if slices.Equal(kept.Bytes, m.Bytes) {
		t.Error("a copy changes with what it is of")
	}
}
