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

// A Change is one record as a run emitted it. Key is canonical. Data is one JSON object, or
// empty for a delete.
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

// An Order is an order in which records are listed.
type Order string

// The orders of records. ByKey compares the bytes of canonical keys, for a compound key its
// JSON text; ByEmitted breaks ties by key.
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
	// After continues a listing by version: RecordPage.After of the previous page, or the
	// Version of the last record seen. 0 starts at the beginning.
	After uint64
	// AfterKey continues a listing in another order: RecordPage.AfterKey of the previous
	// page. ByKey accepts any key; otherwise the value is opaque. "" starts at the
	// beginning, or at the end if Descending.
	AfterKey string
	// Deleted includes tombstones.
	Deleted bool
	// Descending lists from the end, the newest version first. After and AfterKey are then
	// exclusive upper bounds, and 0 is the end.
	Descending bool
	// Match filters records; nil accepts all. It must not block or keep Data. A page ends
	// after a bounded number of calls, so it may have few records, or none, and still More.
	Match func(Record) bool
	Limit int // 1..5000, of which a driver may return fewer; 0 means 100
}

// A RecordPage is a page of records. More says that another page may follow, after After or
// AfterKey; without Match it does.
//
// A listing by version returns changes: every current record or tombstone with Version >
// After, at most one per key, so that applying all pages reproduces the stream. In another
// order a record that changes between two pages may be in both or, if it moves, in neither,
// unless the pages are read from one View.
type RecordPage struct {
	Records  []Record
	More     bool
	After    uint64 // where a page by version ends
	AfterKey string // where a page in another order ends
	// Version is the newest version of the stream when the page was read.
	Version uint64
}

// A View reads records as of one commit, unaffected by later writes and erasures. It keeps
// disk space from being freed, so close it soon. It is safe for concurrent use, and ends
// when the store is closed.
type View interface {
	// Records is Store.Records as of that commit.
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
