package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// history stores the records of ticks.
type history struct{ store Store }

// countTick adds a record to the sums.
func countTick(t *host.Statistics, k host.Tick) {
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

// Statuses of a Tick beside those of a run.
const skipped = "skipped"

// keptRecords bounds the records kept of a connection.
const keptRecords = 500

// A historyRecord is a document with the id connection/number, in hexadecimal. The newest has the
// sums, so they outlive old records and the schedule.
type historyRecord struct {
	Tick host.Tick       `json:"tick"`
	Sums host.Statistics `json:"sums"` // without LastRun
}

func readRecord(raw json.RawMessage) (k historyRecord, err error) {
	var old struct{ Tick, Sums json.RawMessage }
	err = errors.Join(json.Unmarshal(raw, &k), json.Unmarshal(raw, &old), readOld(old.Tick, &k.Tick),
		readOld(old.Sums, &k.Sums))
	return k, err
}

func tickPrefix(id store.ConnectionID) string { return string(id) + "/" }

func tickID(id store.ConnectionID, n uint64) string { return fmt.Sprintf("%s/%016x", id, n) }

// newest returns the newest record and its number, 0 if there is none.
func (h *history) newest(ctx context.Context, id store.ConnectionID) (historyRecord, uint64, error) {
	docs, err := h.store.Documents(ctx,
		store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Descending: true, Limit: 1})
	if err != nil || len(docs) == 0 {
		return historyRecord{}, 0, err
	}
	k, err := readRecord(docs[0].Data)
	if err != nil {
		return k, 0, fmt.Errorf("read history of %s: %w", id, err)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(docs[0].ID, tickPrefix(id)), 16, 64)
	return k, n, err
}

// record returns the writes that add a record and delete the oldest one beyond keptRecords. They
// conflict with those for another record, and the caller then retries.
func (h *history) record(ctx context.Context, id store.ConnectionID, t host.Tick) ([]store.Write, error) {
	last, n, err := h.newest(ctx, id)
	if err != nil {
		return nil, err
	}
	n++
	sums := last.Sums
	countTick(&sums, t)
	data, err := json.Marshal(historyRecord{t, sums})
	if err != nil {
		return nil, fmt.Errorf("encode history of %s: %w", id, err)
	}
	writes := []store.Write{{Kind: store.Ticks, ID: tickID(id, n), Data: data, If: store.Absent()}}
	if n > keptRecords {
		writes = append(writes, store.Write{Kind: store.Ticks, ID: tickID(id, n-keptRecords)})
	}
	return writes, nil
}

// recorded reports whether one of the newest records is about a run.
func (h *history) recorded(ctx context.Context, id store.ConnectionID, run store.RunID) (bool, error) {
	page, _, err := h.History(ctx, id, "", 10)
	return slices.ContainsFunc(page, func(t host.Tick) bool { return t.RunID == string(run) }), err
}

// History returns records newest first. before is a next of an earlier page, "" for the newest;
// limit is 1 to 500. The history outlives the schedule.
func (h *history) History(ctx context.Context, id store.ConnectionID, before string,
	limit int) (page []host.Tick, next string, err error) {
	limit = min(max(limit, 1), keptRecords)
	q := store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Descending: true, Limit: limit + 1}
	if before != "" {
		n, err := strconv.ParseUint(before, 16, 64)
		if err != nil {
			return nil, "", &host.Refusal{Code: "invalid_request", Message: "The cursor is not one of this list.",
				Details: map[string]any{"field": "cursor"}}
		}
		q.After = tickID(id, n)
	}
	docs, err := h.store.Documents(ctx, q)
	if err != nil {
		return nil, "", fmt.Errorf("list history of %s: %w", id, err)
	}
	if len(docs) > limit {
		docs = docs[:limit]
		next = strings.TrimPrefix(docs[limit-1].ID, tickPrefix(id))
	}
	page = make([]host.Tick, 0, len(docs))
	for _, d := range docs {
		k, err := readRecord(d.Data)
		if err != nil {
			return nil, "", fmt.Errorf("read history of %s: %w", id, err)
		}
		page = append(page, k.Tick)
	}
	return page, next, nil
}

// Statistics returns the sums of all records, including deleted ones.
func (h *history) Statistics(ctx context.Context, id store.ConnectionID) (host.Statistics, error) {
	k, n, err := h.newest(ctx, id)
	if err != nil {
		return host.Statistics{}, err
	}
	if n > 0 {
		k.Sums.LastRun = &k.Tick
	}
	return k.Sums, nil
}

// Forget deletes schedule, history and mark of a connection that is being deleted. The caller has
// ended its active run.
func (s *Scheduler) Forget(ctx context.Context, id store.ConnectionID) error {
	if err := s.Delete(ctx, id); err != nil && !errors.As(err, new(*host.Refusal)) {
		return err
	}
	for {
		docs, err := s.store.Documents(ctx, store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Limit: 100})
		if err != nil {
			return fmt.Errorf("list history of %s: %w", id, err)
		}
		writes := []store.Write{{Kind: store.Attention, ID: string(id)}}
		for _, d := range docs {
			writes = append(writes, store.Write{Kind: d.Kind, ID: d.ID})
		}
		if err := s.store.Write(ctx, writes...); err != nil || len(docs) == 0 {
			return err
		}
	}
}
