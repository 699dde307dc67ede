package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"
)

// A State is the cursor of one stream in one grant namespace. The cursor is opaque and
// never edited; null is a value.
type State struct {
	Stream      Stream          `json:"stream"`
	Cursor      json.RawMessage `json:"cursor"`
	CommittedAt time.Time       `json:"committed_at"`
	RunID       RunID           `json:"run_id"`
}

// A DetailGap records that the detail of a record is missing. Its key is connection, grant
// namespace, stream, parent stream and Ref.
type DetailGap struct {
	ID           string          `json:"gap_id"`
	Stream       Stream          `json:"stream"`
	ParentStream Stream          `json:"parent_stream,omitempty"`
	Ref          string          `json:"-"`                    // record key, or digest of the locator
	RecordKey    string          `json:"record_key,omitempty"` // text form
	Reason       string          `json:"reason,omitempty"`
	Locator      json.RawMessage `json:"detail_locator,omitempty"`
	ListCursor   json.RawMessage `json:"list_cursor,omitempty"`
	Status       string          `json:"status"` // pending or recovered
	Retryable    bool            `json:"retryable"`
	AttemptCount int             `json:"attempt_count"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	RunID        RunID           `json:"run_id"` // run that last touched it
}

// Identity identifies a gap within its namespace: a hash of stream, parent and Ref, because
// Ref may be a record key of any length.
func (g DetailGap) Identity() string {
	sum := sha256.Sum256(append([]byte{'N'}, ItemKey(string(g.Stream), string(g.ParentStream), g.Ref)...))
	return string(sum[:])
}

// OldestGaps returns the gaps with a status, "" for any, oldest first.
func OldestGaps(kept []KeptGap, status string) (gaps []DetailGap) {
	for _, k := range kept {
		if status == "" || k.Status == status {
			gaps = append(gaps, k.Gap())
		}
	}
	slices.SortFunc(gaps, func(a, b DetailGap) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return gaps
}
