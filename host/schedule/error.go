package schedule

import "fmt"

// The codes of Error.
const (
	CodeInvalid    = "schedule_invalid" // details.field
	CodeNotFound   = "schedule_not_found"
	CodeIneligible = "schedule_ineligible" // details.reason
	CodeRevision   = "precondition_failed" // details.revision
)

// An Error is an operation that was refused. Message is a sentence for the
// owner; it quotes nothing longer than what was checked.
type Error struct {
	Code    string
	Message string
	Details map[string]any
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Message: fmt.Sprintf(format, args...), Details: map[string]any{"field": field}}
}

func notFound() *Error {
	return &Error{Code: CodeNotFound, Message: "This connection has no schedule."}
}

func ineligible(reason, format string, args ...any) *Error {
	return &Error{Code: CodeIneligible, Message: fmt.Sprintf(format, args...), Details: map[string]any{"reason": reason}}
}

func revised(revision uint64) *Error {
	return &Error{Code: CodeRevision, Message: "The schedule was changed meanwhile; read it again.", Details: map[string]any{"revision": revision}}
}
