package store

import (
	"context"
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
// canonical. Data is one JSON object, or empty for a delete.
type Change struct {
	Op        Op
	Compound  bool  // Key is a minified JSON array of strings
	EmittedAt int64 // microseconds since 1970 UTC
	Key       []byte
	Data      []byte
}

// A Record is the current content of a key, or its tombstone.
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

// An Order says how records are listed.
type Order string

// The orders of records. By key is by the bytes of the canonical key, so of a
// compound one by its JSON text; by emission time equals are by key.
const (
	ByVersion Order = "version" // or ""
	ByKey     Order = "key"
	ByEmitted Order = "emitted"
)

// A RecordQuery selects records of one stream.
type RecordQuery struct {
	Connection ConnectionID
	Stream     Stream
	Order      Order
	// After continues a listing by version: RecordPage.After of the page before, or
	// the Version of the last record seen. With ChangesSince semantics 0 is the
	// beginning.
	After uint64
	// AfterKey continues a listing in another order: RecordPage.AfterKey of the
	// page before. By key it is a key, and any may be given; else it means nothing
	// to others. "" is the beginning, or with Descending the end.
	AfterKey string
	// Deleted includes tombstones.
	Deleted bool
	// Descending lists from the end, the newest version first; After and AfterKey
	// are then exclusive from above, and 0 is the end.
	Descending bool
	// Match drops the records that it returns false for; nil is none. It does not
	// block, and keeps nothing of Data. A page ends when it was asked about so many
	// records that the next page is better a call of its own, so a page may have few
	// records, or none, and yet More.
	Match func(Record) bool
	Limit int // 1..5000, of which a driver may give fewer; 0 means 100
}

// A RecordPage is a slice of the records in the order asked for. More says that
// another page may follow, after After or AfterKey; without Match it does.
//
// Reading changes: every current record or tombstone with Version > After, at
// most one entry per key, so that applying all pages reproduces the stream.
// In another order a record that changes between two pages may be in both or, when it
// moves, in none; a View has no such pages.
type RecordPage struct {
	Records  []Record
	More     bool
	After    uint64 // where a page by version ended
	AfterKey string // where one in another order did
	// Version is the newest version of the stream when the page was read.
	Version uint64
}

// A View reads records as of one commit: what is written later does not show,
// and what is written over or erased later is still there. It holds disk
// space that would be free otherwise, so it is closed soon. It may be used
// concurrently. It ends with the store.
type View interface {
	// Records is Store.Records as of the commit.
	Records(ctx context.Context, q RecordQuery) (RecordPage, error)
	Close()
}

// StreamStats are the counters of one stream.
type StreamStats struct {
	Stream      Stream    `json:"stream"`
	Live        uint64    `json:"records"`
	Tombstones  uint64    `json:"deleted"`
	LastVersion uint64    `json:"last_version"`
	Bytes       uint64    `json:"bytes"` // stored record data, history included
	UpdatedAt   time.Time `json:"updated_at"`
}
