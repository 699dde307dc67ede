package schedule

import (
	"fmt"

	"github.com/sluicehost/sluice/host"
)

func invalid(field, format string, args ...any) *host.Refusal {
	return &host.Refusal{Code: CodeInvalid, Message: fmt.Sprintf(format, args...), Details: map[string]any{"field": field}}
}

func notFound() *host.Refusal {
	return &host.Refusal{Code: CodeNotFound, Message: "This connection has no schedule."}
}

func ineligible(reason, format string, args ...any) *host.Refusal {
	return &host.Refusal{Code: CodeIneligible, Message: fmt.Sprintf(format, args...),
		Details: map[string]any{"reason": reason}}
}

func revised(revision uint64) *host.Refusal {
	return &host.Refusal{Code: CodeRevision, Message: "The schedule was changed meanwhile; read it again.",
		Details: map[string]any{"revision": revision}}
}

// The codes of refusals.
const (
	CodeInvalid    = "schedule_invalid" // details.field
	CodeNotFound   = "schedule_not_found"
	CodeIneligible = "schedule_ineligible" // details.reason
	CodeRevision   = "precondition_failed" // details.revision
)
