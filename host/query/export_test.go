package query

import "time"

// Within bounds the time of a query.
func (m *Mirror) Within(d time.Duration) { m.within = d }
