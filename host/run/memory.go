package run

import (
	"slices"
	"time"
)

// maxParts is the largest number of intervals in a Memory, and firstPart their initial length.
const (
	maxParts  = 60
	firstPart = 250 * time.Millisecond
)

// Memory is the resident memory of a worker over time: the maximum in each of at most maxParts equal intervals
// since the start of the run. An interval without a sample has the value of the one before.
type Memory struct {
	Every int64    `json:"every_ms"`
	Bytes []uint64 `json:"bytes"`
}

// add adds a sample at a time since the start of the run. If there are too many intervals, their length doubles.
func (m *Memory) add(since time.Duration, bytes uint64) {
	if bytes == 0 || since < 0 {
		return // not known, or not any more
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

// copied returns a copy, nil if there are fewer than two intervals.
func (m *Memory) copied() *Memory {
	if len(m.Bytes) < 2 {
		return nil
	}
	return &Memory{m.Every, slices.Clone(m.Bytes)}
}
