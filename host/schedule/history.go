package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// add counts a record.
func add(t *host.Statistics, k host.Tick) {
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
	Tick host.Tick       `json:"tick"`
	Sums host.Statistics `json:"sums"` // without LastRun
}

func readKept(raw json.RawMessage) (k kept, err error) {
	var old struct{ Tick, Sums json.RawMessage }
	err = errors.Join(json.Unmarshal(raw, &k), json.Unmarshal(raw, &old), readOld(old.Tick, &k.Tick), readOld(old.Sums, &k.Sums))
	return k, err
}

func tickPrefix(id store.ConnectionID) string { return string(id) + "/" }

func tickID(id store.ConnectionID, n uint64) string { return fmt.Sprintf("%s/%016x", id, n) }

// newest reads the newest record and its number; 0 when there is none.
func (s *Scheduler) newest(ctx context.Context, id store.ConnectionID) (kept, uint64, error) {
	docs, err := s.d.Store.Documents(ctx, store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Descending: true, Limit: 1})
	if err != nil || len(docs) == 0 {
		return kept{}, 0, err
	}
	k, err := readKept(docs[0].Data)
	if err != nil {
		return k, 0, fmt.Errorf("read history of %s: %w", id, err)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(docs[0].ID, tickPrefix(id)), 16, 64)
	return k, n, err
}

// record is the change that adds a record, and takes away the one that is too
// old. It conflicts with any other, which change then makes good.
func (s *Scheduler) record(ctx context.Context, id store.ConnectionID, t host.Tick) ([]store.Write, error) {
	last, n, err := s.newest(ctx, id)
	if err != nil {
		return nil, err
	}
	n++
	sums := last.Sums
	add(&sums, t)
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
	return slices.ContainsFunc(page, func(t host.Tick) bool { return t.RunID == string(run) }), err
}

// History lists records newest first. before is a next of an earlier page, ""
// for the newest; limit is 1 to 500. It outlives the schedule.
func (s *Scheduler) History(ctx context.Context, id store.ConnectionID, before string, limit int) (page []host.Tick, next string, err error) {
	limit = min(max(limit, 1), keep)
	q := store.DocumentQuery{Kind: store.Ticks, Prefix: tickPrefix(id), Descending: true, Limit: limit + 1}
	if before != "" {
		n, err := strconv.ParseUint(before, 16, 64)
		if err != nil {
			return nil, "", &host.Refusal{Code: "invalid_request", Message: "The cursor is not one of this list.", Details: map[string]any{"field": "cursor"}}
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
	page = make([]host.Tick, 0, len(docs))
	for _, d := range docs {
		k, err := readKept(d.Data)
		if err != nil {
			return nil, "", fmt.Errorf("read history of %s: %w", id, err)
		}
		page = append(page, k.Tick)
	}
	return page, next, nil
}

// Statistics sums up all records that ever were.
func (s *Scheduler) Statistics(ctx context.Context, id store.ConnectionID) (host.Statistics, error) {
	k, n, err := s.newest(ctx, id)
	if err != nil {
		return host.Statistics{}, err
	}
	if n > 0 {
		k.Sums.LastRun = &k.Tick
	}
	return k.Sums, nil
}

// Forget erases schedule, history and mark of a connection that is erased. A run
// that is active is the caller's to have ended.
func (s *Scheduler) Forget(ctx context.Context, id store.ConnectionID) error {
	if err := s.Delete(ctx, id); err != nil && !errors.As(err, new(*host.Refusal)) {
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

// A result is what a schedule looks at in the result value of a run.
type result struct {
	Status                 string          `json:"status"`
	Outcome                string          `json:"outcome"`
	TerminalReason         *string         `json:"terminal_reason"`
	Failure                *failure        `json:"failure"`
	RecordsEmitted         *int64          `json:"records_emitted"`
	ReportedRecordsEmitted json.RawMessage `json:"reported_records_emitted"`
	CheckpointSummary      json.RawMessage `json:"checkpoint_summary"`
	KnownGaps              []gap           `json:"known_gaps"`
	ConnectorError         *abi.DoneError  `json:"connector_error"`
	State                  json.RawMessage `json:"state"`
}

type failure struct {
	Reason  string `json:"reason"`
	Subtype string `json:"subtype"`
	Origin  string `json:"origin"`
	Message string `json:"message"`
}

type gap struct {
	Kind string `json:"kind"`
	Hint struct {
		Action    string `json:"action"`
		Retryable bool   `json:"retryable"`
	} `json:"recovery_hint"`
}

// resultOf reads the result of a run that is over.
func resultOf(r store.Run) (result, error) {
	var out result
	if err := json.Unmarshal(r.Result, &out); err != nil {
		return out, fmt.Errorf("read result of run %s: %w", r.ID, err)
	}
	if out.Status == "" {
		out.Status = r.Status
	}
	return out, nil
}

func (r result) reason() string {
	if r.TerminalReason == nil {
		return ""
	}
	return *r.TerminalReason
}

func (r result) failureReason() string {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Reason
}

// reasonClass groups failures for the back-off.
func reasonClass(t host.Tick) string {
	var e abi.DoneError
	switch {
	case t.TerminalReason != "":
		return "terminal:" + t.TerminalReason
	case t.FailureReason != "":
		return "failure:" + t.FailureReason
	case json.Unmarshal(t.ConnectorError, &e) == nil && e.Code != "":
		return "connector:" + abi.Cut(e.Code, 100)
	}
	return "failure:unknown"
}

// tickOf is the history record of a run that was the last of its tick.
func tickOf(run store.Run, r result) (host.Tick, error) {
	var parts struct {
		KnownGaps      json.RawMessage `json:"known_gaps"`
		ConnectorError json.RawMessage `json:"connector_error"`
	}
	if err := json.Unmarshal(run.Result, &parts); err != nil {
		return host.Tick{}, fmt.Errorf("read result of run %s: %w", run.ID, err)
	}
	t := host.Tick{
		Attempt: run.Attempt, Status: r.Status, Outcome: r.Outcome, ConnectorID: string(run.ConnectorID), ConnectionID: string(run.ConnectionID),
		Source: sourceOf(run.ConnectorID), RunID: string(run.ID), TraceID: string(run.TraceID), StartedAt: run.StartedAt,
		RecordsEmitted: r.RecordsEmitted, CheckpointSummary: bounded(present(r.CheckpointSummary)), KnownGaps: bounded(present(parts.KnownGaps)),
		ConnectorError: bounded(present(parts.ConnectorError)), FailureReason: r.failureReason(), TerminalReason: r.reason(),
		State: bounded(present(r.State)), TriggerKind: run.TriggerKind, CatchUp: run.Request.CatchUp,
	}
	if n, ok := strictjson.Int64(r.ReportedRecordsEmitted); ok {
		t.ReportedRecordsEmitted = &n
	}
	if run.FinishedAt != nil {
		t.CompletedAt = *run.FinishedAt
	}
	if r.Failure != nil {
		t.Error = abi.Cut(r.Failure.Message, maxError)
	}
	return t, nil
}

const maxError = 500 // characters

// sourceOf is where the records of a run come from, as its timeline says it.
func sourceOf(id store.ConnectorID) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"kind": "connector", "id": string(id)}) // strings always encode
	return raw
}

// maxPart is how much of a result a record keeps of each member; more is kept as
// its digest.
const maxPart = 256 << 10

func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxPart {
		return raw
	}
	return json.RawMessage(fmt.Sprintf(`{"digest":"sha256:%x","bytes":%d}`, sha256.Sum256(raw), len(raw)))
}

func present(raw json.RawMessage) json.RawMessage {
	if strings.TrimSpace(string(raw)) == "null" {
		return nil
	}
	return raw
}

// since is t in the form that is stored, nil for none.
func since(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
