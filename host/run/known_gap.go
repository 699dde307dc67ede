package run

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
)

// A KnownGap is a note of bounded size about something that was not collected or not finished.
type KnownGap struct {
	Kind         string            `json:"kind"`
	Reason       string            `json:"reason"`
	Severity     string            `json:"severity"`
	Stream       *string           `json:"stream"`
	Message      string            `json:"message,omitempty"`
	Count        int64             `json:"count,omitempty"` // number of records, where known
	Scope        *GapScope         `json:"scope,omitempty"`
	RecoveryHint Hint              `json:"recovery_hint"`
	Diagnostics  json.RawMessage   `json:"diagnostics,omitempty"`
	Continuation *abi.Continuation `json:"continuation,omitempty"`
}

// A GapScope identifies the part of a stream that a gap is about.
type GapScope struct {
	ResourceIDs  []string       `json:"resource_ids,omitempty"`
	TimeRange    *abi.TimeRange `json:"time_range,omitempty"`
	ParentStream string         `json:"parent_stream,omitempty"`
	RecordKey    string         `json:"record_key,omitempty"`
	Truncated    bool           `json:"truncated,omitempty"`
}

// A Hint is a recovery hint with its defaults filled in.
type Hint struct {
	Action    string `json:"action"`
	Retryable bool   `json:"retryable"`
}

// The kinds of known gaps.
const (
	gapSkip        = "skip_result"
	gapDetail      = "detail_gap"
	gapCoverage    = "detail_coverage"
	gapInteraction = "interaction_required"
	gapRunFailed   = "run_failed"
	gapCheckpoint  = "checkpoint_commit"
	gapRejected    = "records_rejected"
)

// hintOf returns what may help: a declared hint if there is one, otherwise what the words suggest.
func hintOf(declared *abi.RecoveryHint, retryable *bool, words ...string) Hint {
	if declared != nil {
		return Hint{declared.Action, declared.WillRetry()}
	}
	if retryable != nil && *retryable {
		return Hint{abi.RetryByRuntime, true}
	}
	action := inferAction(strings.Join(words, " "))
	return Hint{action, action == abi.RetryByRuntime}
}

// word returns a function that compiles a pattern for whole words on first use, since most processes never need
// it. Letters, digits and underscore belong to a word.
func word(list string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9_])(?:` + list + `)(?:[^A-Za-z0-9_]|$)`)
	})
}

// inference maps words to what may help. The first row that matches applies.
var inference = []struct {
	words  func() *regexp.Regexp
	action string
}{
	{word(`otp|mfa|2fa|manual|captcha|anti-bot`), abi.ManualActionRequired},
	{word(`credentials?|auth|login|session_expired|reauth|token`), abi.RefreshCredentials},
	{word(`rate|429|5[0-9][0-9]|timeout|timed out|network|temporary|retry`), abi.RetryByRuntime},
	{word(`template|parser|schema|version|unsupported|capability`), abi.RetryOnConnectorUpgrade},
	{word(`selectors?|dom|drift`), abi.UpdateSelector},
	{word(`blocked|locked|unavailable|upstream`), abi.UpstreamUnblock},
}

func inferAction(text string) string {
	for _, row := range inference {
		if row.words().MatchString(text) {
			return row.action
		}
	}
	return abi.UnknownAction
}

// transientReasons are the reasons of gaps that resolve without action.
var transientReasons = map[string]bool{
	"http_429": true, "manifest_stream_unresolved": true, "rate_limited": true, "retry_exhausted": true,
	"temporary_unavailable": true, "upstream_pressure": true, "upstream_pressure_deferred": true,
}

// severity returns how much a gap matters. named reports whether an explicit scope names the stream.
func severity(kind, reason string, named, unsupported bool, declared *abi.RecoveryHint) string {
	switch {
	case kind == gapDetail:
		return "recoverable"
	case kind == gapRunFailed, kind == gapCheckpoint, kind == gapInteraction:
		return "actionable"
	case reason == "not_available" && unsupported && !named:
		return "informational"
	case reason == "not_available_in_mode", reason == "out_of_scope", reason == "user_disabled":
		if named {
			return "actionable"
		}
		return "informational"
	case transientReasons[reason]:
		return "transient"
	case declared != nil && declared.Action == abi.RetryByRuntime:
		return "transient"
	}
	return "actionable"
}

// Limits of the gaps that a run keeps and shows; the summary counts all.
const (
	maxGapsKept    = 1000
	maxGapsShown   = 50
	maxGapReasons  = 50
	maxGapText     = 200
	maxGapListItem = 20
)

// A gapList keeps gaps in the order in which they arose.
type gapList struct {
	kept     []KnownGap
	count    int
	holes    int // gaps that mean missing data; detail gaps are not counted, since they may be recovered
	byReason map[string]int
}

func (l *gapList) add(g KnownGap) {
	l.count++
	if g.Severity != "informational" && g.Kind != gapDetail {
		l.holes++
	}
	if l.byReason == nil {
		l.byReason = map[string]int{}
	}
	reason := g.Reason
	if _, seen := l.byReason[reason]; !seen && len(l.byReason) >= maxGapReasons {
		reason = "other"
	}
	l.byReason[reason]++
	if len(l.kept) < maxGapsKept || g.Kind == gapRunFailed || g.Kind == gapCheckpoint {
		l.kept = append(l.kept, g)
	}
}

func (l *gapList) clone() gapList {
	return gapList{slices.Clone(l.kept), l.count, l.holes, maps.Clone(l.byReason)}
}

// shown returns the gaps that an event may carry: the first ones and the closing ones.
func (l *gapList) shown() []KnownGap {
	if len(l.kept) <= maxGapsShown {
		return l.kept
	}
	closing := 0
	for i := len(l.kept) - 1; i >= 0 && (l.kept[i].Kind == gapRunFailed || l.kept[i].Kind == gapCheckpoint); i-- {
		closing++
	}
	head := l.kept[: maxGapsShown-closing : maxGapsShown-closing]
	return append(head, l.kept[len(l.kept)-closing:]...)
}

// A GapSummary counts all gaps of a run.
type GapSummary struct {
	Count     int            `json:"count"`
	ByReason  map[string]int `json:"by_reason"`
	Truncated bool           `json:"truncated"`
}

func (l *gapList) summary() GapSummary {
	return GapSummary{l.count, l.byReason, l.count > maxGapsShown}
}
