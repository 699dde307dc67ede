package engine

import (
	"encoding/json"

	"github.com/sluicehost/sluice/host/browser/page"
)

// The versions of the tables, in every result. A change in a table raises its
// number.
const (
	EffectTableVersion = 1
	FailureMapVersion  = 1
	TraceVersion       = 1
)

// States of an action.
const (
	Resolved   = "resolved"
	Dispatched = "dispatched"
	Pending    = "pending_verification"
	Verified   = "verified"
	Failed     = "failed"
)

// Effects.
const (
	LocalState = "local_state"
	SideEffect = "side_effect"
)

// ResultReverted is the verification result of an action that was verified, and whose
// delta did not last; DetailReverted the detail of its failure, and of that of the
// action which found it; CodeReverted refuses a verb that found it.
const (
	ResultReverted = "reverted"
	DetailReverted = "reverted"
	CodeReverted   = "action_reverted"
)

// A Code says what went wrong in an action; the source of truth about it.
type Code string

// The runtime codes.
const (
	ElementNotFound    Code = "ELEMENT_NOT_FOUND"
	StaleReference     Code = "STALE_REFERENCE"
	AmbiguousTarget    Code = "AMBIGUOUS_TARGET"
	Timeout            Code = "TIMEOUT"
	ActionRejected     Code = "ACTION_REJECTED"
	VerificationFailed Code = "VERIFICATION_FAILED"
	ExpectMismatch     Code = "EXPECT_STATE_MISMATCH"
	ConvergenceFailed  Code = "CONTROL_CONVERGENCE_FAILED"
	SemanticMismatch   Code = "SEMANTIC_MISMATCH"
	Unknown            Code = "UNKNOWN"
)

// A Result is the one envelope of actions. Members that are pointers or slices are
// always in the JSON, as null or [].
type Result struct {
	ActionID           string       `json:"action_id"`
	Action             Verb         `json:"action"`
	Category           string       `json:"category"`
	ActionType         string       `json:"action_type"`
	ActionTypeSource   string       `json:"action_type_source"`
	EffectTableVersion int          `json:"effect_table_version"`
	Idempotent         bool         `json:"idempotent"`
	Intent             string       `json:"intent"`
	Timestamp          string       `json:"timestamp"`
	State              string       `json:"lifecycle_state"`
	Transitions        []Transition `json:"transitions"`
	Dispatched         bool         `json:"dispatched"`
	Success            bool         `json:"success"`
	Target             *TargetInfo  `json:"target"`
	Verification       Verification `json:"verification"`
	FingerprintBefore  *string      `json:"fingerprint_before"`
	FingerprintAfter   *string      `json:"fingerprint_after"`
	SnapshotRevision   int64        `json:"snapshot_revision"`
	FailureCode        *Code        `json:"failure_code"`
	FailureReason      *string      `json:"failure_reason"`
	Detail             *string      `json:"detail"`
	Retryable          *bool        `json:"retryable"`
	Recovery           *Recovery    `json:"recovery"`
	Terminal           *Terminal    `json:"terminal"`
	Trace              Trace        `json:"trace"`
	Tabs               []TabInfo    `json:"tabs"`
	Details            any          `json:"details"`
}

// A Transition is one step of the lifecycle; At is in epoch milliseconds.
type Transition struct {
	State   string `json:"state"`
	At      int64  `json:"at"`
	CycleID int    `json:"cycle_id"`
}

// TargetInfo says what was meant and what was found.
type TargetInfo struct {
	ElementID  string      `json:"element_id,omitempty"`
	Selector   *Selector   `json:"selector,omitempty"`
	Resolved   *Element    `json:"resolved"`
	Resolution *Resolution `json:"resolution,omitempty"`
}

// A Resolution says how sure the choice of an element is.
type Resolution struct {
	Confidence        float64     `json:"confidence"`
	Reason            string      `json:"reason"`
	FallbackAvailable bool        `json:"fallback_available"`
	MatchedCount      int         `json:"matched_count"`
	Alternates        []Alternate `json:"alternates"`
}

// An Alternate is an element that was nearly chosen.
type Alternate struct {
	ElementID string   `json:"element_id"`
	Role      string   `json:"role"`
	Text      string   `json:"text"`
	Bounds    page.Box `json:"bounds"`
	Clickable bool     `json:"clickable"`
	Enabled   bool     `json:"enabled"`
	Score     float64  `json:"score"`
	Reason    string   `json:"reason"`
}

// An Element is what a guest is told of an element.
type Element struct {
	ElementID      string           `json:"element_id"`
	StableID       string           `json:"stable_id,omitempty"`
	Role           string           `json:"role"`
	Label          string           `json:"label,omitempty"`
	Text           string           `json:"text,omitempty"`
	TestTag        string           `json:"test_tag,omitempty"`
	Selector       *ElementSelector `json:"selector,omitempty"`
	State          *page.State      `json:"state,omitempty"`
	Semantic       *Semantic        `json:"semantic,omitempty"`
	Bounds         page.Box         `json:"bounds"`
	Frame          string           `json:"frame"`
	Actionable     bool             `json:"actionable"`
	ExpectedSignal string           `json:"expected_signal,omitempty"` // advice, never proof
	Hint           *Hint            `json:"interaction_hint,omitempty"`
}

// An ElementSelector is a description that finds the element again.
type ElementSelector struct {
	Value      Selector   `json:"value"`
	Confidence Confidence `json:"confidence"`
}

// Confidence is a ranking aid, never proof.
type Confidence struct {
	Score  float64 `json:"score"`
	Reason string  `json:"reason"`
}

// A Semantic is what a control seems to be.
type Semantic struct {
	Clickable  bool     `json:"is_clickable"`
	Container  bool     `json:"is_container"`
	Role       string   `json:"semantic_role,omitempty"`
	Actions    []string `json:"supported_actions,omitempty"`
	Adjustable *bool    `json:"adjustable,omitempty"`
	Shape      string   `json:"state_shape,omitempty"`
	Confidence string   `json:"confidence"`
	Reason     string   `json:"reason"`
}

// A Hint says how a control without semantics may be worked.
type Hint struct {
	Kind  string   `json:"kind"`
	Axis  string   `json:"axis"`
	Track page.Box `json:"track_bounds"`
}

// Verification is how a result was proved, or why it was not.
type Verification struct {
	Result      string          `json:"result"` // verified, inconclusive, deferred, not_evaluated or reverted
	Delta       json.RawMessage `json:"delta"`
	DeltaOrigin string          `json:"delta_origin"` // declared, default or deferred
	Observed    []Observed      `json:"observed"`
	Reason      string          `json:"reason"`
	Stability
	Ambiguous      bool            `json:"ambiguous"`
	Classification *Classification `json:"classification"`
	Diagnostics    any             `json:"diagnostics"`
}

// Stability is what a stabilisation reports.
type Stability struct {
	Attempts  int          `json:"stabilization_attempts"`
	WindowMS  int64        `json:"stabilization_window_ms"`
	Count     int          `json:"stable_observation_count"`
	Freshness *int64       `json:"snapshot_freshness_ms"`
	Settings  SettingsInfo `json:"settings"`
}

// SettingsInfo are the effective settings, in milliseconds.
type SettingsInfo struct {
	WindowMS   int64 `json:"window_ms"`
	Count      int   `json:"stable_count"`
	MaxRecheck int   `json:"max_recheck"`
	IntervalMS int64 `json:"interval_ms"`
	StaleMS    int64 `json:"stale_ms"`
}

// Observed is what one predicate of a delta saw last.
type Observed struct {
	Kind    string          `json:"kind"`
	Source  string          `json:"source"`
	Holds   bool            `json:"holds"`
	Before  *bool           `json:"before"` // nil: unreadable
	Value   json.RawMessage `json:"value,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Matched int             `json:"matched_count"`
}

// A Classification is how the outcome of an action was classified.
type Classification struct {
	Outcome   string `json:"outcome"`
	Reasoning string `json:"reasoning"`
}

// Recovery is the state of the recovery of an action: its first values come from the adapter, only the
// engine changes it.
type Recovery struct {
	Class         string `json:"failure_class"`
	Code          Code   `json:"runtime_code"`
	Strategy      string `json:"recovery_strategy,omitempty"`
	Attempts      int    `json:"recovery_attempts"`
	MaxAttempts   int    `json:"max_recovery_attempts"`
	RetryDepth    int    `json:"retry_depth"`
	MaxRetryDepth int    `json:"max_retry_depth"`
	Terminal      bool   `json:"is_terminal"`
	RetryAllowed  *bool  `json:"retry_allowed,omitempty"`
}

// A Terminal is the end of an action that cannot be recovered.
type Terminal struct {
	Class      string   `json:"failure_class"`
	Code       Code     `json:"runtime_code"`
	Target     *Element `json:"resolved_target,omitempty"`
	Strategies []string `json:"attempted_recovery_strategies"`
	Attempts   int      `json:"recovery_attempts"`
	FinalState string   `json:"final_state"` // failed
}

// A Trace is what an action went through.
type Trace struct {
	ActionID string `json:"action_id"`
	Steps    []Step `json:"steps"`
	Outcome  string `json:"final_outcome"` // success or failure
	Attempts int    `json:"attempts"`
}

// A Step is one stage of a trace.
type Step struct {
	Stage   string         `json:"stage"` // resolve, execute, verify, stabilize or recover
	At      int64          `json:"timestamp"`
	Result  string         `json:"result"` // success, failure or retry
	Index   int            `json:"attempt_index"`
	CycleID int            `json:"cycle_id,omitempty"`
	Meta    map[string]any `json:"metadata,omitempty"` // at most 2 KiB
}

// TabInfo is a tab as guests see it.
type TabInfo struct {
	TabID   string `json:"tab_id"`
	URLHost string `json:"url_host"`
	Active  bool   `json:"active"`
	Closed  string `json:"closed,omitempty"` // why, for one that is gone since the last reply
}

// A Signal is what is told of every finished action.
type Signal struct {
	ActionID     string       `json:"action_id"`
	TargetID     string       `json:"target_id,omitempty"`
	Action       Verb         `json:"action"`
	Category     string       `json:"category"`
	ActionType   string       `json:"action_type"`
	Transitions  []Transition `json:"transitions"`
	Verification string       `json:"verification_result"`
	Reason       string       `json:"failure_reason,omitempty"`
	Class        string       `json:"failure_class,omitempty"`
	Code         Code         `json:"runtime_code,omitempty"`
	Attempts     int          `json:"attempts"`
	DurationMS   int64        `json:"duration_ms"`
	Revision     int64        `json:"snapshot_revision"`
	Role         string       `json:"role,omitempty"`
	URLHost      string       `json:"url_host,omitempty"`
}
