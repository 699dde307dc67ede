package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Queries answers questions about what was collected, from a copy in SQLite that is
// brought up to date first.
type Queries interface {
	// Tables are the streams that hold something, of the connections of only; nil is all.
	Tables(ctx context.Context, only []store.ConnectionID) ([]Table, error)
	// Query runs one statement that only reads. What it may not do, and where it is wrong,
	// is a *Refusal with query_invalid or query_denied; query_limit ends one that takes
	// too long or too much memory.
	Query(ctx context.Context, q Query) (QueryResult, error)
	// Copying is how far the copies are that are being brought up to date, of the
	// connections of only; nil is all.
	Copying(ctx context.Context, only []store.ConnectionID) ([]Copying, error)
}

// Copying is how far the copy of a connection is. Total may be more than there will be: it
// counts records that changed again too.
type Copying struct {
	ConnectionID string `json:"connectionId"`
	Done         uint64 `json:"done"`  // records
	Total        uint64 `json:"total"` // records
}

// A Query is one SELECT over tables that are named CONNECTION.STREAM.
type Query struct {
	SQL string `json:"sql"`
	// Rows is the most that are answered: 1000 for 0, at most 100,000.
	Rows int `json:"rows,omitempty"`
	// Only are the connections that it may see; nil is all.
	Only []store.ConnectionID `json:"-"`
}

// A QueryResult is what a query found.
type QueryResult struct {
	Columns []QueryColumn       `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows"` // in the order of Columns: null, numbers, texts
	// Truncated: there are more rows than were asked for, or than fit into an answer.
	Truncated bool `json:"truncated"`
}

// A QueryColumn is a column of a result. Its type is that of a table's column, "" for what
// is computed.
type QueryColumn struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

// A Table is a stream as queries see it.
type Table struct {
	Name         string        `json:"name"` // CONNECTION.STREAM, quoted where that needs it
	ConnectionID string        `json:"connectionId"`
	Stream       string        `json:"stream"`
	Columns      []QueryColumn `json:"columns"`
	Records      uint64        `json:"records"`
	Bytes        uint64        `json:"bytes"`
	UpdatedAt    time.Time     `json:"updatedAt"` // of its newest record
}
