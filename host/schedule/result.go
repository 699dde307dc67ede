package schedule

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A result is the part of a run's result that a schedule needs.
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

// resultOf parses the result of a finished run.
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

// tickOf returns the history record of a run that was the last of its tick.
func tickOf(run store.Run, r result) (host.Tick, error) {
	var parts struct {
		KnownGaps      json.RawMessage `json:"known_gaps"`
		ConnectorError json.RawMessage `json:"connector_error"`
	}
	if err := json.Unmarshal(run.Result, &parts); err != nil {
		return host.Tick{}, fmt.Errorf("read result of run %s: %w", run.ID, err)
	}
	t := host.Tick{
		Attempt: run.Attempt, Status: r.Status, Outcome: r.Outcome, ConnectorID: string(run.ConnectorID),
		ConnectionID: string(run.ConnectionID), Source: sourceOf(run.ConnectorID), RunID: string(run.ID),
		TraceID: string(run.TraceID), StartedAt: run.StartedAt, RecordsEmitted: r.RecordsEmitted,
		CheckpointSummary: bounded(orNil(r.CheckpointSummary)), KnownGaps: bounded(orNil(parts.KnownGaps)),
		ConnectorError: bounded(orNil(parts.ConnectorError)), FailureReason: r.failureReason(), TerminalReason: r.reason(),
		State: bounded(orNil(r.State)), TriggerKind: run.TriggerKind, CatchUp: run.Request.CatchUp,
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

// sourceOf returns the origin of a run's records, in the form of its timeline.
func sourceOf(id store.ConnectorID) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"kind": "connector", "id": string(id)}) // strings always encode
	return raw
}

// maxPart bounds each member of a result in a record; larger ones are replaced by a digest.
const maxPart = 256 << 10

func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxPart {
		return raw
	}
	return json.RawMessage(fmt.Sprintf(`{"digest":"sha256:%x","bytes":%d}`, sha256.Sum256(raw), len(raw)))
}

func orNil(raw json.RawMessage) json.RawMessage {
	if strings.TrimSpace(string(raw)) == "null" {
		return nil
	}
	return raw
}

// timeOrNil returns t in UTC, or nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
