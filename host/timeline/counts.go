package timeline

// Metrics are the record counts of R80, as far as they are known. Emitted and
// DurationMs are known once the run is over.
type Metrics struct {
	RecordsEmitted             *int64 `json:"recordsEmitted,omitempty"`
	RecordsAttempted           int64  `json:"recordsAttempted"`
	RecordsAccepted            int64  `json:"recordsAccepted"`
	RecordsFlushed             int64  `json:"recordsFlushed"`
	RecordsPermanentlyRejected int64  `json:"recordsPermanentlyRejected"`
	RecordsUnresolvedRetryable int64  `json:"recordsUnresolvedRetryable"`
	DurationMs                 *int64 `json:"durationMs,omitempty"`
}

type counts struct {
	Metrics
	known bool
}

func (c *counts) add(t Type, m members) {
	if t != RunBatchIngested {
		return
	}
	c.known = true
	c.RecordsAttempted += m.integer("records_attempted")
	c.RecordsAccepted += m.integer("records_accepted")
	c.RecordsFlushed += m.integer("records_flushed")
	c.RecordsPermanentlyRejected += m.integer("records_permanently_rejected")
	c.RecordsUnresolvedRetryable = c.RecordsAttempted - c.RecordsAccepted - c.RecordsPermanentlyRejected
}

// final takes the counts of a terminal block, or of a result value.
func (c *counts) final(m members) {
	set := func(to *int64, name string) {
		if n, ok := m.number(name); ok {
			*to, c.known = n, true
		}
	}
	set(&c.RecordsAttempted, "records_attempted")
	set(&c.RecordsAccepted, "records_accepted")
	set(&c.RecordsFlushed, "records_flushed")
	set(&c.RecordsPermanentlyRejected, "records_permanently_rejected")
	set(&c.RecordsUnresolvedRetryable, "records_unresolved_retryable")
	if n, ok := m.number("records_emitted"); ok {
		c.RecordsEmitted = &n
	}
	if n, ok := m.number("durationMs"); ok {
		c.DurationMs = &n
	}
}

// metrics is nil while nothing is known.
func (c *counts) metrics() *Metrics {
	if !c.known && c.DurationMs == nil {
		return nil
	}
	m := c.Metrics
	return &m
}
