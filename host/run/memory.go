package run

import (
	"slices"
	"time"
)

// maxParts is in how many parts the time of a run is divided, and firstPart how long each is
// until they are too many.
const (
	maxParts  = 60
	firstPart = 250 * time.Millisecond
)

// Memory is the resident memory of a worker over the time of its run: the most in each of
// equal parts from the run's start, at most 60. A part in which nothing was measured has the
// value of the one before.
type Memory struct {
	Every int64    `json:"every_ms"`
	Bytes []uint64 `json:"bytes"`
}

// add notes what a worker has at a time after the run's start. Parts double when they are too
// many.
func (m *Memory) add(since time.Duration, bytes uint64) {
	if bytes == 0 || since < 0 {
		return // it is not known, or no more
	}
	if m.Every == 0 {
		m.Every = firstPart.Milliseconds()
	}
	for since.Milliseconds()/m.Every >= maxParts {
		for i := range (len(m.Bytes) + 1) / 2 {
			m.Bytes[i] = slices.Max(m.Bytes[2*i : min(2*i+2, len(m.Bytes))])
		}
		m.Bytes = m.Bytes[:(len(m.Bytes)+1)/2]
		m.Every *= 2
	}
	at := int(since.Milliseconds() / m.Every)
	for len(m.Bytes) <= at {
		before := uint64(0)
		if n := len(m.Bytes); n > 0 {
			before = m.Bytes[n-1]
		}
		m.Bytes = append(m.Bytes, before)
	}
	m.Bytes[at] = max(m.Bytes[at], bytes)
}

// copied is a Memory of its own, nil for one that says nothing over time.
func (m *Memory) copied() *Memory {
	if len(m.Bytes) < 2 {
		return nil
	}
	return &Memory{m.Every, slices.Clone(m.Bytes)}
}
