package query

import "time"

// Within bounds the time of a query.
func (m *Mirror) Within(d time.Duration) { m.within = d }

// Scratch bounds what a query sorts, in bytes.
func (m *Mirror) Scratch(n int64) { m.scratch = n }
