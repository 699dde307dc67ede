package store

import (
	"encoding/json"
	"time"
)

// An Op says what a record does to its key.
type Op uint8

const (
	Upsert Op = 0
	Delete Op = 1
)

// A Change is one record as a run handed it over, in emission order. Key is
// canonical (R46). Data is one JSON object, or empty for a delete.
type Change struct {
	Op        Op
	Compound  bool  // Key is a minified JSON array of strings
	EmittedAt int64 // microseconds since 1970 UTC
	Key       []byte
	Data      []byte
}

// A Record is the current content of a key, or its tombstone (R77, A212).
type Record struct {
	Stream     Stream
	Key        string // canonical
	Compound   bool
	Data       json.RawMessage // nil for a tombstone
	EmittedAt  time.Time
	IngestedAt time.Time
	Version    uint64 // per connection and stream, from 1, one per real change
	RunID      RunID
	Deleted    bool
}

// A RecordQuery selects records of one stream.
type RecordQuery struct {
	Connection ConnectionID
	Stream     Stream
	// After continues a listing: the Version of the last record seen. With
	// ChangesSince semantics 0 is the beginning.
	After uint64
	// Deleted includes tombstones.
	Deleted bool
	// Descending lists the newest version first; After is then exclusive from above,
	// and 0 is the end.
	Descending bool
	Limit      int // 1..1000; 0 means 100
}

// A RecordPage is a slice of the records in version order. More says that
// another page follows after the last record's Version.
//
// Reading changes: every current record or tombstone with Version > After, at
// most one entry per key, so that applying all pages reproduces the stream
// (A214).
type RecordPage struct {
	Records []Record
	More    bool
	// Version is the newest version of the stream when the page was read.
	Version uint64
}

// StreamStats are the counters of one stream (S123, A204).
type StreamStats struct {
	Stream      Stream    `json:"stream"`
	Live        uint64    `json:"records"`
	Tombstones  uint64    `json:"deleted"`
	LastVersion uint64    `json:"last_version"`
	Bytes       uint64    `json:"bytes"` // stored record data, history included
	UpdatedAt   time.Time `json:"updated_at"`
}
