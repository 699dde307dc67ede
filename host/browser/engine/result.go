package engine

import (
	"encoding/json"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Versions of the tables, part of every result. Changing a table raises its version.
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

// ResultReverted is the verification result of a verified action whose delta did not last.
// DetailReverted is the detail of its failure and of the action that found it; CodeReverted refuses
// a verb that found it.
const (
	ResultReverted = "reverted"
	DetailReverted = "reverted"
	CodeReverted   = "action_reverted"
)

// A Code says what went wrong in an action. It is authoritative.
type Code string

// The failure codes.
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

// A Result is the reply of every action. Pointers and slices are always present in the JSON, as
// null or [].
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

// A Transition is a change of state; At is in milliseconds since the epoch.
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

// A Resolution says how certain the choice of an element is.
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

// An Element is an element as guests see it.
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

// An ElementSelector is a description by which the element can be found again.
type ElementSelector struct {
	Value      Selector   `json:"value"`
	Confidence Confidence `json:"confidence"`
}

// Confidence helps to rank and proves nothing.
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

// A Hint says how a control without semantics may be operated.
type Hint struct {
	Kind  string   `json:"kind"`
	Axis  string   `json:"axis"`
	Track page.Box `json:"track_bounds"`
}

// Verification says how a result was proved, or why it was not.
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

// Stability reports a stabilisation.
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

// A Classification is the classified outcome of an action.
type Classification struct {
	Outcome   string `json:"outcome"`
	Reasoning string `json:"reasoning"`
}

// Recovery is the recovery state of an action. Only the engine changes it.
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

// A Terminal describes an action that cannot be recovered.
type Terminal struct {
	Class      string   `json:"failure_class"`
	Code       Code     `json:"runtime_code"`
	Target     *Element `json:"resolved_target,omitempty"`
	Strategies []string `json:"attempted_recovery_strategies"`
	Attempts   int      `json:"recovery_attempts"`
	FinalState string   `json:"final_state"` // always failed
}

// A Trace is the recorded steps of an action.
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
	Closed  string `json:"closed,omitempty"` // why, for a tab that was closed since the last reply
}

// A Signal reports a finished action.
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
