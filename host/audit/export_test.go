package audit

import "time"

// SetRoll makes files small.
func (l *Log) SetRoll(n int64) { l.roll = n }

// SetRoll makes files small.
func (q *Requests) SetRoll(n int64) { q.roll = n }

// SetNow gives a Limited its time.
func (l *Limited) SetNow(now func() time.Time) { l.now = now }

// ParseEntry is parseEntry.
var ParseEntry = parseEntry

// Text is how an entry is written.
func (e *Entry) Text() ([]byte, error) { return e.text() }

// Seal makes the hash fit, as a forger would.
func (e *Entry) Seal() error { return e.seal() }
