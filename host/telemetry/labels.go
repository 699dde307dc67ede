package telemetry

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const other = "other"

// The allowed values of labels.
var (
	outcomes = []string{"succeeded", "partial", "failed", "cancelled"}
	// reasons lists the terminal reasons of runs, with "none" for success.
	reasons = []string{
		"none", "connector_reported_failed", "connector_reported_cancelled", "connector_protocol_violation",
		"connector_exit_without_done", "connector_trapped", "connector_stdin_closed", "owner_cancelled",
		"owner_cancel_forced", "run_timed_out", "assistance_timed_out", "interaction_handler_invalid_response",
		"memory_limit_exceeded", "worker_protocol_error", "worker_lost", "launch_failed", "controller_restarted",
		"replay_diverged", "scheduler_dispatch_wedged", "runtime_error", "authentication_error", "permission_error",
		"grant_consumed", "grant_expired", "grant_invalid", "grant_revoked", "rate_limit_error", "connector_invalid",
		"ingest_http_error", "ingest_storage_error", "ingest_response_invalid", "ingest_envelope_contract_violation",
	}
	triggers   = []string{"manual", "scheduled", "retry"}
	kinds      = []string{"credentials", "otp", "manual_action", "approval", "clarification"}
	closings   = []string{"success", "cancelled", "timeout", "lost"}
	delivered  = []string{"delivered", "failed", "dropped", "disabled"}
	tickEnds   = []string{"succeeded", "failed", "cancelled", "skipped"}
	skipReason = []string{
		"grant_consumed", "grant_unusable", "active_run", "needs_human_attention", "automation_policy_blocked",
		"not_ready", "scheduler_backoff_applied", "run_refused", "disabled",
	}
	methods = []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions,
	}
)

func of(list []string, value string) string {
	if slices.Contains(list, value) {
		return value
	}
	return other
}

// maxRoutes bounds the routes; there are fewer.
const maxRoutes = 256

// route returns a template of the router, or "other" if there is none. It is never the requested
// path.
func (m *Metrics) route(template string) string {
	if !strings.HasPrefix(template, "/") || len(template) > 200 {
		return other
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.routes[template] {
		if len(m.routes) >= maxRoutes {
			return other
		}
		template = strings.Clone(template) // it may share memory with a request
		m.routes[template] = true
	}
	return template
}

func status(code int) string {
	if code < 100 || code > 599 {
		return other
	}
	return strconv.Itoa(code)
}
