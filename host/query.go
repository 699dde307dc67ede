package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Queries runs SQL over a SQLite copy of the collected data, which it brings up to date
// first.
type Queries interface {
	// Tables lists the streams that hold records, of the connections in only; nil is all.
	Tables(ctx context.Context, only []store.ConnectionID) ([]Table, error)
	// Query runs one read-only statement. It returns a *Refusal: query_invalid for a wrong
	// statement, query_denied for a forbidden one, query_limit for one that takes too much
	// time or memory.
	Query(ctx context.Context, q Query) (QueryResult, error)
	// Copying returns the progress of copies that are being updated, of the connections in
	// only; nil is all.
	Copying(ctx context.Context, only []store.ConnectionID) ([]Copying, error)
}

// Copying is the progress of one connection's copy. Total is an upper bound: it counts
// every change of a record.
type Copying struct {
	ConnectionID string `json:"connectionId"`
	Done         uint64 `json:"done"`  // records
	Total        uint64 `json:"total"` // records
}

// A Query is one SELECT over tables that are named CONNECTION.STREAM.
type Query struct {
	SQL string `json:"sql"`
	// Rows limits the result: 1000 for 0, at most 100,000.
	Rows int `json:"rows,omitempty"`
	// Only are the connections that the query may see; nil is all.
	Only []store.ConnectionID `json:"-"`
}

// A QueryResult is what a query found.
type QueryResult struct {
	Columns []QueryColumn       `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows"` // values in the order of Columns: null, numbers, strings
	// Truncated says that there are more rows than requested, or than fit into an answer.
	Truncated bool `json:"truncated"`
}

// A QueryColumn is a column of a result. Type is that of the table's column, "" for an
// expression.
type QueryColumn struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

// A Table is a stream as queries see it.
type Table struct {
	Name         string        `json:"name"` // CONNECTION.STREAM, quoted where necessary
	ConnectionID string        `json:"connectionId"`
	Stream       string        `json:"stream"`
	Columns      []QueryColumn `json:"columns"`
	Records      uint64        `json:"records"`
	Bytes        uint64        `json:"bytes"`
	UpdatedAt    time.Time     `json:"updatedAt"` // when its newest record was stored
}
