package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A Tick is a history record: one due time, or why it was skipped.
type Tick struct {
	Attempt                int             `json:"attempt"`
	Status                 string          `json:"status"`            // succeeded, failed, cancelled, skipped
	Outcome                string          `json:"outcome,omitempty"` // of a run: complete, partial, failed, cancelled
	ConnectorID            string          `json:"connector_id"`
	ConnectionID           string          `json:"connection_id"`
	Source                 json.RawMessage `json:"source,omitempty"`
	RunID                  string          `json:"run_id,omitempty"`
	TraceID                string          `json:"trace_id,omitempty"`
	StartedAt              time.Time       `json:"started_at"`
	CompletedAt            time.Time       `json:"completed_at"`
	RecordsEmitted         *int64          `json:"records_emitted"` // nil: nobody knows any more
	ReportedRecordsEmitted *int64          `json:"reported_records_emitted,omitempty"`
	CheckpointSummary      json.RawMessage `json:"checkpoint_summary,omitempty"`
	KnownGaps              json.RawMessage `json:"known_gaps,omitempty"`
	ConnectorError         json.RawMessage `json:"connector_error,omitempty"`
	FailureReason          string          `json:"failure_reason,omitempty"`
	TerminalReason         string          `json:"terminal_reason,omitempty"`
	State                  json.RawMessage `json:"state,omitempty"`
	Error                  string          `json:"error,omitempty"`
	TriggerKind            string          `json:"trigger_kind"`
	CatchUp                bool            `json:"catch_up,omitempty"`
}

// Statistics of a connection. Skipped ticks are no runs.
type Statistics struct {
	TotalRuns    int64 `json:"total_runs"`
	Succeeded    int64 `json:"succeeded"`
	Partial      int64 `json:"partial"` // of those that succeeded, left something out
	Failed       int64 `json:"failed"`
	Cancelled    int64 `json:"cancelled"`
	Skipped      int64 `json:"skipped"`
	TotalRecords int64 `json:"total_records"`
	LastRun      *Tick `json:"last_run,omitempty"` // the newest record
}

func (t *Statistics) add(k Tick) {
	switch k.Status {
	case "succeeded":
		t.Succeeded++
		if k.Outcome == "partial" {
			t.Partial++
		}
	case "failed":
		t.Failed++
	case "cancelled":
		t.Cancelled++
	default:
		t.Skipped++
	}
	t.TotalRuns = t.Succeeded + t.Failed + t.Cancelled
	if k.RecordsEmitted != nil {
		t.TotalRecords += *k.RecordsEmitted
	}
}

// The statuses of a Tick beside those of a run.
const skipped = "skipped"

// keep is how many records of a connection are kept.
const keep = 500

// A kept record is a document: connection/number, in hexadecimal. The newest has
// the sums, so that they outlive old records and the schedule itself.
type kept struct {
	Tick Tick       `json:"tick"`
	Sums Statistics `json:"sums"` // without LastRun
}

func tickPrefix(id store.ConnectionID) string { return string(id) + "/" }

func tickID(id store.ConnectionID, n uint64) string { return fmt.Sprintf("%s/%016x", id, n) }

// newest reads the newest record and its number; 0 when there is none.
func (s *Scheduler) newest(ctx context.Context, id store.ConnectionID) (kept, uint64, error) {
	docs, err := s.d.Store.Documents(ctx, store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Descending: true, Limit: 1})
	if err != nil || len(docs) == 0 {
		return kept{}, 0, err
	}
	var k kept
	if err := json.Unmarshal(docs[0].Data, &k); err != nil {
		return k, 0, fmt.Errorf("read history of %s: %w", id, err)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(docs[0].ID, tickPrefix(id)), 16, 64)
	return k, n, err
}

// record is the change that adds a record, and takes away the one that is too
// old. It conflicts with any other, which change then makes good.
func (s *Scheduler) record(ctx context.Context, id store.ConnectionID, t Tick) ([]store.Write, error) {
	last, n, err := s.newest(ctx, id)
	if err != nil {
		return nil, err
	}
	n++
	sums := last.Sums
	sums.add(t)
	data, err := json.Marshal(kept{t, sums})
	if err != nil {
		return nil, fmt.Errorf("encode history of %s: %w", id, err)
	}
	writes := []store.Write{{Kind: store.Ticks, ID: tickID(id, n), Data: data, If: store.Absent()}}
	if n > keep {
		writes = append(writes, store.Write{Kind: store.Ticks, ID: tickID(id, n-keep)})
	}
	return writes, nil
}

// recorded reports whether one of the newest records is of a run.
func (s *Scheduler) recorded(ctx context.Context, id store.ConnectionID, run store.RunID) (bool, error) {
	page, _, err := s.History(ctx, id, "", 10)
	return slices.ContainsFunc(page, func(t Tick) bool { return t.RunID == string(run) }), err
}

// History lists records newest first. before is a next of an earlier page, ""
// for the newest; limit is 1 to 500. It outlives the schedule.
func (s *Scheduler) History(ctx context.Context, id store.ConnectionID, before string, limit int) (page []Tick, next string, err error) {
	limit = min(max(limit, 1), keep)
	q := store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Descending: true, Limit: limit + 1}
	if before != "" {
		n, err := strconv.ParseUint(before, 16, 64)
		if err != nil {
			return nil, "", &Error{Code: "invalid_request", Message: "The cursor is not one of this list.", Details: map[string]any{"field": "cursor"}}
		}
		q.After = tickID(id, n)
	}
	docs, err := s.d.Store.Documents(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("list history of %s: %w", id, err)
	}
	if len(docs) > limit {
		docs = docs[:limit]
		next = strings.TrimPrefix(docs[limit-1].ID, tickPrefix(id))
	}
	page = make([]Tick, 0, len(docs))
	for _, d := range docs {
		var k kept
		if err := json.Unmarshal(d.Data, &k); err != nil {
			return nil, "", fmt.Errorf("read history of %s: %w", id, err)
		}
		page = append(page, k.Tick)
	}
	return page, next, nil
}

// Statistics sums up all records that ever were.
func (s *Scheduler) Statistics(ctx context.Context, id store.ConnectionID) (Statistics, error) {
	k, n, err := s.newest(ctx, id)
	if err != nil {
		return Statistics{}, err
	}
	if n > 0 {
		k.Sums.LastRun = &k.Tick
	}
	return k.Sums, nil
}

// Forget erases schedule, history and mark of a connection that is erased. A run
// that is active is the caller's to have ended.
func (s *Scheduler) Forget(ctx context.Context, id store.ConnectionID) error {
	if err := s.Delete(ctx, id); err != nil && !errors.As(err, new(*Error)) {
		return err
	}
	for {
		docs, err := s.d.Store.Documents(ctx, store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Limit: 100})
		if err != nil {
			return fmt.Errorf("list history of %s: %w", id, err)
		}
		writes := []store.Write{{Kind: store.Attention, ID: string(id)}}
		for _, d := range docs {
			writes = append(writes, store.Write{Kind: d.Kind, ID: d.ID})
		}
		if err := s.d.Store.Write(ctx, writes...); err != nil || len(docs) == 0 {
			return err
		}
	}
}
