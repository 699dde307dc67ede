package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Schedules manages when connections run automatically.
type Schedules interface {
	PutSchedule(ctx context.Context, id store.ConnectionID, d ScheduleDefinition, revision *uint64) (s Schedule,
		created bool, err error)
	Schedule(ctx context.Context, id store.ConnectionID) (Schedule, error)
	Schedules(ctx context.Context) ([]Schedule, error)
	PauseSchedule(ctx context.Context, id store.ConnectionID) (Schedule, error)
	ResumeSchedule(ctx context.Context, id store.ConnectionID) (Schedule, error)
	DeleteSchedule(ctx context.Context, id store.ConnectionID) error
	// ScheduleHistory lists newest first. before "" starts at the newest, and next is "" on
	// the last page.
	ScheduleHistory(ctx context.Context, id store.ConnectionID, before string, limit int) (page []Tick,
		next string, err error)
	ScheduleStatistics(ctx context.Context, id store.ConnectionID) (Statistics, error)
}

// ScheduleDefinition is a schedule as an owner sets it; nil members get their defaults.
type ScheduleDefinition struct {
	Cron            string `json:"cron,omitempty"`
	IntervalSeconds *int64 `json:"intervalSeconds,omitempty"`
	Timezone        string `json:"timezone,omitempty"`
	JitterSeconds   *int64 `json:"jitterSeconds,omitempty"`
	Enabled         *bool  `json:"enabled,omitempty"`
	CatchUp         *bool  `json:"catchUp,omitempty"`
	MaxRetries      *int64 `json:"maxRetries,omitempty"`
}

// ScheduleTerms are a checked ScheduleDefinition with defaults filled in.
//
// Invariant: exactly one of Cron and IntervalSeconds is set.
type ScheduleTerms struct {
	Cron            string `json:"cron,omitempty"`
	IntervalSeconds int64  `json:"intervalSeconds,omitempty"`
	Timezone        string `json:"timezone,omitempty"` // "" for an interval
	JitterSeconds   int64  `json:"jitterSeconds"`
	Enabled         bool   `json:"enabled"`
	CatchUp         bool   `json:"catchUp"`
	MaxRetries      int64  `json:"maxRetries"`
}

// Schedule is the terms of a schedule with its status.
type Schedule struct {
	ConnectionID string `json:"connectionId"`
	Revision     uint64 `json:"revision"`
	ScheduleTerms

	EffectiveMode          string     `json:"effectiveMode"` // automatic, manual or paused
	HumanAttentionNeeded   bool       `json:"humanAttentionNeeded"`
	IneligibilityReason    string     `json:"ineligibilityReason,omitempty"` // the gate that refuses a start now
	LastErrorCode          string     `json:"lastErrorCode,omitempty"`
	LastStartedAt          *time.Time `json:"lastStartedAt,omitempty"`
	LastFinishedAt         *time.Time `json:"lastFinishedAt,omitempty"`
	LastSuccessfulAt       *time.Time `json:"lastSuccessfulAt,omitempty"`
	NextDueAt              *time.Time `json:"nextDueAt,omitempty"`
	ActiveRunID            string     `json:"activeRunId,omitempty"`
	HeldUp                 string     `json:"heldUp,omitempty"` // why a due run does not start or go on, as a sentence
	TicksSkippedOverlap    int64      `json:"ticksSkippedOverlap"`
	MinimumIntervalWarning bool       `json:"minimumIntervalWarning"`
	SchedulerBackoff       *Backoff   `json:"schedulerBackoff,omitempty"`
	AutomationMode         string     `json:"automationMode"` // unattended, assisted or ask_before_run
}

// Backoff is the effect of consecutive failures on a schedule.
type Backoff struct {
	Applied                bool       `json:"backoffApplied"` // the next due time would be skipped
	ConsecutiveFailures    int        `json:"consecutiveFailures"`
	ReasonClass            string     `json:"reasonClass"`
	NextRunAt              *time.Time `json:"nextRunAt,omitempty"`    // nil while blocked
	RecommendedHealthState string     `json:"recommendedHealthState"` // cooling_off or blocked
}

// Tick is a history entry: a run at a due time, or why it was skipped.
type Tick struct {
	Attempt                int             `json:"attempt"`
	Status                 string          `json:"status"`            // succeeded, failed, cancelled, skipped
	Outcome                string          `json:"outcome,omitempty"` // of the run: complete, partial, failed, cancelled
	ConnectorID            string          `json:"connectorId"`
	ConnectionID           string          `json:"connectionId"`
	Source                 json.RawMessage `json:"source,omitempty"`
	RunID                  string          `json:"runId,omitempty"`
	TraceID                string          `json:"traceId,omitempty"`
	StartedAt              time.Time       `json:"startedAt"`
	CompletedAt            time.Time       `json:"completedAt"`
	RecordsEmitted         *int64          `json:"recordsEmitted"` // nil if it is no longer known
	ReportedRecordsEmitted *int64          `json:"reportedRecordsEmitted,omitempty"`
	CheckpointSummary      json.RawMessage `json:"checkpointSummary,omitempty"`
	KnownGaps              json.RawMessage `json:"knownGaps,omitempty"`
	ConnectorError         json.RawMessage `json:"connectorError,omitempty"`
	FailureReason          string          `json:"failureReason,omitempty"`
	TerminalReason         string          `json:"terminalReason,omitempty"`
	State                  json.RawMessage `json:"state,omitempty"`
	Error                  string          `json:"error,omitempty"`
	TriggerKind            string          `json:"triggerKind"`
	CatchUp                bool            `json:"catchUp,omitempty"`
}

// Statistics sums up the ticks of a connection. Skipped ticks do not count as runs.
type Statistics struct {
	TotalRuns    int64 `json:"totalRuns"`
	Succeeded    int64 `json:"succeeded"`
	Partial      int64 `json:"partial"` // succeeded, but left something out
	Failed       int64 `json:"failed"`
	Cancelled    int64 `json:"cancelled"`
	Skipped      int64 `json:"skipped"`
	TotalRecords int64 `json:"totalRecords"`
	LastRun      *Tick `json:"lastRun"` // the newest entry
}
