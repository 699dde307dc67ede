package schedule

import (
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// retryWait returns how long to wait after a failed attempt.
func retryWait(attempt int) time.Duration {
	const first, longest = time.Second, 30 * time.Second
	if attempt > 5 {
		return longest
	}
	return min(first<<(max(attempt, 1)-1), longest)
}

// retryable reports whether another attempt may help. The first matching case wins; the numbers
// refer to the rows of docs/spec/runs.md, "Retries".
func (r result) retryable() bool {
	switch {
	case r.Status != abi.Failed: // 1
		return false
	case slices.ContainsFunc(r.KnownGaps, gap.wantsOwner): // 2
		return false
	case r.wantsAuthorization(): // 3
		return false
	case r.refusedBySink(), r.clientError(): // 4
		return false
	case slices.Contains(neverRetried, r.reason()): // 5
		return false
	case r.reason() == "launch_failed" && !slices.Contains(retriedLaunches, r.subtype()): // 5
		return false
	case slices.ContainsFunc(r.KnownGaps, gap.wantsRetry): // 6
		return true
	case r.ConnectorError != nil && r.ConnectorError.Retryable != nil && !*r.ConnectorError.Retryable: // 7
		return false
	}
	return true // 8
}

// neverRetried lists reasons with which another attempt would end as well (row 5).
var neverRetried = []string{
	"connector_protocol_violation", "authentication_error", "permission_error",
	"grant_consumed", "grant_expired", "grant_invalid", "grant_revoked",
	"connector_invalid", "run_timed_out", "assistance_timed_out", "memory_limit_exceeded", "worker_protocol_error",
}

// retriedLaunches lists launch failures that another attempt may avoid (row 5).
var retriedLaunches = []string{"host_resources", "prepare_timeout", "surface_start_failed"}

func (r result) subtype() string {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Subtype
}

func (g gap) wantsOwner() bool {
	return g.Hint.Action == abi.ManualActionRequired || g.Hint.Action == abi.RefreshCredentials
}

func (g gap) wantsRetry() bool {
	return g.Kind == "run_failed" && g.Hint.Action == abi.RetryByRuntime && g.Hint.Retryable
}

// authorizationWords are the words of row 3.
var authorizationWords = []string{
	"401", "403", "auth_missing", "credential_required", "credentials_required", "credential_rejected", "invalid_token",
	"manual_action_required", "reauth", "session_expired", "session_failed", "session_required",
	"unauthorized", "forbidden",
}

// wantsAuthorization implements row 3: the texts of a connector that gave no hint say that access
// was denied.
func (r result) wantsAuthorization() bool {
	e := r.ConnectorError
	if e == nil || e.RecoveryHint != nil || e.Retryable != nil && *e.Retryable {
		return false
	}
	return slices.ContainsFunc(words(e.Code+" "+e.Message),
		func(w string) bool { return slices.Contains(authorizationWords, w) })
}

// words splits a text into runs of letters, digits and underscores, in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_'
	})
}

// sinkRetries lists the reasons of a store that was throttled or failed; any other reason is a
// refusal.
var sinkRetries = []string{
	"rate_limit_error", "ingest_http_error", "ingest_storage_error", "ingest_response_invalid",
	"ingest_envelope_contract_violation", "runtime_error", "controller_restarted",
}

func (r result) refusedBySink() bool {
	return r.Failure != nil && (r.Failure.Origin == "storage" || r.Failure.Origin == "transport") &&
		!slices.Contains(sinkRetries, r.reason())
}

// clientError reports whether the connector's error code is an HTTP status from 400 to 499, except
// 429.
func (r result) clientError() bool {
	if r.ConnectorError == nil {
		return false
	}
	code := strings.TrimPrefix(strings.ToLower(r.ConnectorError.Code), "http_")
	return len(code) == 3 && code[0] == '4' && strings.Trim(code, "0123456789") == "" && code != "429"
}
