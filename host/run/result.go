package run

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A Result is what every run returns, however it ends.
type Result struct {
	RunID           store.RunID        `json:"run_id"`
	TraceID         store.TraceID      `json:"trace_id"`
	ConnectorID     store.ConnectorID  `json:"connector_id"`
	ConnectionID    store.ConnectionID `json:"connection_id"`
	ConnectorDigest store.Digest       `json:"connector_digest"`
	Status          string             `json:"status"`
	Outcome         string             `json:"outcome"` // complete, partial, failed, cancelled
	TerminalReason  *string            `json:"terminal_reason"`
	Failure         *Failure           `json:"failure"`
	Violation       *abi.Violation     `json:"violation,omitempty"`
	ExitCode        *int               `json:"exit_code"`
	Trap            *Trap              `json:"trap,omitempty"`

	RecordsEmitted         int64           `json:"records_emitted"`
	ReportedRecordsEmitted json.RawMessage `json:"reported_records_emitted,omitempty"`
	RecordCounts
	State                cursors           `json:"state"`
	CheckpointSummary    Checkpoints       `json:"checkpoint_summary"`
	KnownGaps            []KnownGap        `json:"known_gaps"`
	DetailGaps           []GapNote         `json:"detail_gaps"`
	CollectionFacts      *Facts            `json:"collection_facts"`
	ConnectorError       *abi.DoneError    `json:"connector_error"`
	ConnectorDiagnostics *Diagnostics      `json:"connector_diagnostics,omitempty"`
	Deadline             string            `json:"deadline,omitempty"`
	CancelCause          string            `json:"cancel_cause,omitempty"`
	StdinClosedAtPhase   string            `json:"stdin_closed_at_phase,omitempty"`
	HostBound            string            `json:"host_bound,omitempty"` // see store.Run.HostBound
	TriggerKind          string            `json:"trigger_kind"`
	AutomationMode       string            `json:"automation_mode,omitempty"`
	Usage                Usage             `json:"usage"`
	Memory               *Memory           `json:"memory,omitempty"`
	Isolation            sandbox.Isolation `json:"isolation"`
}

// RecordCounts count the outcomes of the records that a guest emitted.
type RecordCounts struct {
	RecordsAttempted           int64 `json:"records_attempted"`
	RecordsAccepted            int64 `json:"records_accepted"`
	RecordsFlushed             int64 `json:"records_flushed"`
	RecordsPermanentlyRejected int64 `json:"records_permanently_rejected"`
	RecordsUnresolvedRetryable int64 `json:"records_unresolved_retryable"`
}

// countsOf returns the counts for numbers of attempted, accepted and rejected records.
func countsOf(attempted, accepted, rejected int64) RecordCounts {
	return RecordCounts{attempted, accepted, accepted, rejected, attempted - accepted - rejected}
}

// in adds the counts to the data of an event.
func (n RecordCounts) in(d data) {
	d["records_attempted"], d["records_accepted"], d["records_flushed"] = n.RecordsAttempted,
		n.RecordsAccepted, n.RecordsFlushed
	d["records_permanently_rejected"], d["records_unresolved_retryable"] = n.RecordsPermanentlyRejected,
		n.RecordsUnresolvedRetryable
}

// A Failure describes what ended a failed run.
type Failure struct {
	Reason   string   `json:"reason"`
	Subtype  string   `json:"subtype,omitempty"`
	Origin   string   `json:"origin,omitempty"`
	Message  string   `json:"message,omitempty"`
	Expected []string `json:"expected,omitempty"`
	Received string   `json:"received,omitempty"`
}

// A Trap describes how a guest crashed.
type Trap struct {
	Kind string `json:"kind"`
}

// Checkpoints is the checkpoint_summary of a result.
type Checkpoints struct {
	Mode                   string   `json:"mode"`
	CommitStatus           string   `json:"commit_status"`
	StateStreamsStaged     int      `json:"state_streams_staged"`
	StateStreamsCommitted  int      `json:"state_streams_committed"`
	StateStreamsWithheld   []string `json:"state_streams_withheld"`
	BufferedRecordsDropped int64    `json:"buffered_records_dropped"`
	RecordCounts
}

// The values of commit_status, checkpoint_mode and state_commit_intent.
const (
	CommitDisabled  = "disabled"
	CommitDone      = "committed"
	CommitPartial   = "partially_committed"
	CommitNone      = "not_committed"
	checkpointMode  = "checkpointed_streaming"
	intentOnSuccess = "commit_on_success"
	intentNone      = "do_not_persist"
)

// A GapNote is an entry of detail_gaps in a result.
type GapNote struct {
	GapID        string `json:"gap_id"`
	Stream       string `json:"stream"`
	ParentStream string `json:"parent_stream,omitempty"`
	Reason       string `json:"reason,omitempty"`
	Status       string `json:"status"`
	AttemptCount int    `json:"attempt_count"`
}

// Usage is what a run used. Times are in milliseconds.
type Usage struct {
	CPU         int64 `json:"cpu_ms"`
	PeakMemory  int64 `json:"peak_memory_bytes"`
	GuestMemory int64 `json:"guest_memory_bytes"`
	Wall        int64 `json:"wall_ms"`
	OwnerWait   int64 `json:"owner_wait_ms"`
	RateWait    int64 `json:"rate_wait_ms"`
	Paused      int64 `json:"paused_ms"`
	HostCalls   int64 `json:"host_calls"`
	BytesIn     int64 `json:"bytes_in"`
}

// cursors maps a checkpoint stream to its staged cursor.
type cursors map[string]json.RawMessage

// Facts are the collection_facts of a result: counts without a verdict.
type Facts struct {
	ReferenceOnly bool         `json:"reference_only"`
	SchemaVersion int          `json:"schema_version"`
	Streams       []StreamFact `json:"streams"`
}

// A StreamFact has the facts about one stream in scope.
type StreamFact struct {
	Stream            string       `json:"stream"`
	Collected         int64        `json:"collected"`
	Rejected          int64        `json:"rejected,omitempty"`
	Considered        *int64       `json:"considered,omitempty"`
	Covered           *int64       `json:"covered,omitempty"`
	Checkpoint        string       `json:"checkpoint"`
	PendingDetailGaps int          `json:"pending_detail_gaps"`
	Skipped           *SkippedFact `json:"skipped"`
	CollectionScope   string       `json:"collection_scope,omitempty"`
}

// A SkippedFact describes the latest skip of a stream.
type SkippedFact struct {
	Reason         string            `json:"reason"`
	RecoveryAction string            `json:"recovery_action,omitempty"`
	Continuation   *abi.Continuation `json:"continuation,omitempty"`
}
