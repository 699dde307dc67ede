package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

// statuses is the one table of error codes and their statuses.
var statuses = map[int][]string{
	400: {"validation_error", "unsupported_stream_mode", "invalid_cursor", "unsupported_filter"},
	401: {"unauthenticated", "key_expired", "key_revoked", "invalid_token"},
	403: {"forbidden", "origin_not_allowed", "force_engine_version_forbidden", "credential_forbidden"},
	404: {"not_found", "interrupt_not_found"},
	405: {"method_not_allowed"},
	406: {"not_acceptable"},
	409: {"run_already_active", "run_already_terminal", "conflict", "idempotency_in_flight", "idempotency_key_mismatch",
		"interrupt_already_resolved", "no_pending_interaction", "interaction_id_mismatch", "ambiguous_connection",
		"connection_not_ready", "connector_in_use", "connector_version_conflict", "schedule_ineligible",
		"stream_not_supported_for_kind", "destination_claimed", "destination_foreign"},
	410: {"interrupt_expired", "events_expired", "cursor_expired", "session_expired"},
	412: {"precondition_failed"},
	413: {"payload_too_large"},
	415: {"unsupported_media_type"},
	416: {"range_not_satisfiable"},
	421: {"host_not_allowed"},
	422: {"interrupt_cancelled", "replay_unavailable", "connector_invalid", "module_invalid", "module_compile_timeout",
		"module_compile_memory", "module_compile_failed", "pack_integrity_failure", "signature_required", "signature_invalid",
		"unsupported_abi_version", "unsupported_pack_runtime", "sandbox_escape_attempt", "binding_not_requested",
		"credential_required", "credential_unavailable", "destination_unavailable",
		"query_invalid", "query_denied", "query_limit", "search_limit"},
	429: {"rate_limited"},
	500: {"internal_error"},
	503: {"unavailable", "browser_surface_unavailable"},
}

// aliases are the codes of refusals that say more exactly what is wrong, by the code
// of the table that they are answered with. They become details.code.
var aliases = map[string][]string{
	"validation_error": {"invalid_request", "invalid_status", "collection_mode_invalid", "setting_unknown",
		"start_state_invalid", "start_too_large",
		"schedule_invalid", "profile_name_invalid", "scope_invalid", "scope_streams_empty", "scope_stream_unknown",
		"scope_field_unknown", "scope_view_unknown", "scope_time_range_invalid", "scope_resources_invalid"},
	"connection_not_ready": {"connection_disabled", "grant_consumed", "grant_expired", "grant_revoked", "grant_invalid",
		"connector_not_runnable", "binding_unsatisfied", "binding_not_approved", "setting_missing",
		"secret_missing", "quota_exceeded"},
	"not_found": {"connection_not_found", "schedule_not_found"},
	"unavailable": {"store_no_space", "store_truncated", "store_corrupt", "store_unavailable", "store_stopped",
		"isolation_broken", "path_unusable"},
}

var byCode, byAlias = inverted(statuses), inverted(aliases)

// inverted returns a table the other way round.
func inverted[K comparable](table map[K][]string) map[string]K {
	by := map[string]K{}
	for key, words := range table {
		for _, w := range words {
			by[w] = key
		}
	}
	return by
}

// statusOf returns the status of a code, 0 for one that is not in the table.
func statusOf(code string) int { return byCode[code] }

// ProblemOf returns what an error is to the client. An error that is nobody's refusal
// is 500 internal_error, and known is false: its text is for the log only.
func ProblemOf(err error) (p *Problem, known bool) {
	var (
		problem  *Problem
		refusal  *host.Refusal
		conflict *store.ConflictError
		active   *store.ActiveError
		damage   *store.DamageError
		rate     *access.RateError
		field    *access.FieldError
		scope    *access.ScopeError
		frame    *fiber.Error
	)
	switch {
	case errors.As(err, &problem):
		return problem, true
	case errors.As(err, &refusal):
		return ofRefusal(refusal)
	case errors.Is(err, store.ErrNotFound):
		return NotFound(), true
	case errors.As(err, &conflict):
		return NewProblem(409, "conflict", "It was changed meanwhile. Read it again and repeat."), true
	case errors.As(err, &active):
		return NewProblem(409, "run_already_active", "A run of this connection is active.").
			With("runId", string(active.RunID)), true
	case errors.Is(err, store.ErrRunTerminal):
		return NewProblem(409, "run_already_terminal", "The run has ended."), true
	case errors.Is(err, store.ErrCursorExpired):
		return NewProblem(410, "cursor_expired", "The cursor is older than what is kept. Read from the beginning."), true
	case errors.Is(err, store.ErrStopped):
		return unavailable("store_stopped", "The host stores nothing more until it is started again. Its log says why."), true
	case errors.Is(err, store.ErrNoSpace):
		return unavailable("store_no_space", "The host has too little free disk space."), true
	case errors.Is(err, store.ErrUnavailable):
		return unavailable("store_unavailable",
			"The database cannot be reached, or is too busy. Runs wait for it. Ask again in a moment."), true
	case errors.As(err, &damage):
		return unavailable(damage.Code, "The store is damaged."), true
	case errors.Is(err, store.ErrReadOnly):
		return unavailable("store_corrupt", "The store was found damaged and takes no changes."), true
	case errors.Is(err, store.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return NewProblem(503, "unavailable", "The host is stopping, or was too busy."), true
	case errors.Is(err, store.ErrSilent):
		return NewProblem(503, "unavailable",
			"The database has not heard of this host for the time of its lease. Ask again in a moment, or another host."), true
	case errors.As(err, &rate):
		return ofRate(rate), true
	case errors.As(err, &field):
		return Invalid(Field{field.Path, field.Rule}), true
	case errors.As(err, &scope) && scope.Unknown:
		return Invalid(Field{"scopes", "scopes that exist"}), true
	case errors.As(err, &scope):
		return NewProblem(403, "forbidden", "A key cannot give scopes that its creator does not have.").
			With("scopeRequired", scope.Scopes[0]), true
	case errors.As(err, &frame):
		return ofFramework(frame), true
	}
	for _, e := range accessErrors {
		if errors.Is(err, e.err) {
			p := e.problem
			return &p, true
		}
	}
	return NewProblem(500, "internal_error", "The host failed to do this. Its log says more under the correlation id."),
		false
}

// accessErrors are the sentinels of access.
var accessErrors = []struct {
	err     error
	problem Problem
}{
	{access.ErrUnauthenticated, Problem{Status: 401, Code: "unauthenticated",
		Message: "This needs a valid credential."}},
	{access.ErrKeyExpired, Problem{Status: 401, Code: "key_expired", Message: "The key is past its date."}},
	{access.ErrKeyRevoked, Problem{Status: 401, Code: "key_revoked", Message: "The key was revoked."}},
	{access.ErrForbidden, Problem{Status: 403, Code: "forbidden", Message: "The credential does not allow this."}},
	{access.ErrTokenUnknown, Problem{Status: 404, Code: "interrupt_not_found", Message: "There is no such interrupt."}},
	{access.ErrTokenExpired, Problem{Status: 410, Code: "interrupt_expired", Message: "The interrupt has expired."}},
	{access.ErrMismatch, Problem{Status: 409, Code: "idempotency_key_mismatch",
		Message: "The idempotency key was used for another request."}},
	{access.ErrInFlight, Problem{Status: 409, Code: "idempotency_in_flight",
		Message: "The first request with this idempotency key still runs.",
		Details: map[string]any{"retryAfter": 5}, RetryAfter: 5 * time.Second}},
	{access.ErrKeySyntax, Problem{Status: 400, Code: "validation_error",
		Message: "Idempotency-Key must be 1 to 255 printable ASCII characters.",
		Details: map[string]any{"fields": []Field{{"header.Idempotency-Key", "1 to 255 printable ASCII characters"}}}}},
}

func unavailable(code, message string) *Problem {
	return NewProblem(503, "unavailable", "%s", message).With("code", code)
}

// ofRefusal gives a command's refusal its status. Every code that starts with
// scope_ is a fault of a scope.
func ofRefusal(r *host.Refusal) (*Problem, bool) {
	code := r.Code
	if status := byCode[code]; status != 0 && status != 500 {
		return &Problem{Status: status, Code: code, Message: r.Message, Details: maps.Clone(r.Details),
			RetryAfter: retryAfter(r.Details)}, true
	}
	under := byAlias[code]
	if under == "" && len(code) > 6 && code[:6] == "scope_" {
		under = "validation_error"
	}
	if under == "" {
		p, _ := ProblemOf(errors.New(code))
		return p, false
	}
	p := &Problem{Status: byCode[under], Code: under, Message: r.Message, Details: maps.Clone(r.Details)}
	return p.With("code", code), true
}

// retryAfter returns what details.retryAfterMs says, or details.retryAfter in seconds.
func retryAfter(details map[string]any) time.Duration {
	for name, unit := range map[string]time.Duration{"retryAfterMs": time.Millisecond, "retryAfter": time.Second} {
		switch n := details[name].(type) {
		case int:
			return time.Duration(n) * unit
		case int64:
			return time.Duration(n) * unit
		}
	}
	return 0
}

func ofRate(r *access.RateError) *Problem {
	p := NewProblem(429, "rate_limited", "Too many requests. Wait and repeat.")
	p.RetryAfter = r.RetryAfter
	return p.With("retryAfterMs", max(1, r.RetryAfter.Milliseconds())).With("scope", r.Scope).With("limit", r.Limit)
}

// ofFramework returns what Fiber and fasthttp refuse by themselves.
func ofFramework(e *fiber.Error) *Problem {
	switch e.Code {
	case http.StatusNotFound:
		return NotFound()
	case http.StatusMethodNotAllowed:
		return NewProblem(0, "method_not_allowed", "This cannot be done here.")
	case http.StatusRequestEntityTooLarge:
		return tooLarge(MaxUpload)
	case http.StatusRequestTimeout:
		return NewProblem(http.StatusRequestTimeout, "validation_error", "The request took too long to arrive.")
	case http.StatusRequestHeaderFieldsTooLarge:
		return NewProblem(http.StatusRequestHeaderFieldsTooLarge, "validation_error",
			"The headers must be at most %d bytes.", maxHeader)
	}
	return NewProblem(400, "validation_error", "This is not a valid HTTP request.")
}

func tooLarge(limit int) *Problem {
	return NewProblem(0, "payload_too_large", "The body must be at most %d bytes.", limit).With("limit", limit)
}
