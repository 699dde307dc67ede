package web

import (
	"fmt"
	"time"
)

// A Problem is a refusal as an HTTP answer: the envelope of every error, with a status. Message
// names fields and limits, never values.
type Problem struct {
	Status  int
	Code    string
	Message string
	Details map[string]any

	// RetryAfter is sent with 429, 409 idempotency_in_flight and 503, unless it is 0.
	RetryAfter time.Duration
	// Allow lists the methods of a 405.
	Allow string
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Message) }

// NewProblem returns a Problem. A status of 0 uses that of the code.
func NewProblem(status int, code, format string, args ...any) *Problem {
	if status == 0 {
		status = statusOf(code)
	}
	return &Problem{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds a detail.
func (p *Problem) With(key string, value any) *Problem {
	if p.Details == nil {
		p.Details = map[string]any{}
	}
	p.Details[key] = value
	return p
}

// A Field is a place in a request and the rule that it violates.
type Field struct {
	Path string `json:"path"`
	Rule string `json:"rule"`
}

// Invalid returns 400 validation_error for fields.
func Invalid(fields ...Field) *Problem {
	p := NewProblem(400, "validation_error", "The request is not valid.")
	if len(fields) > 0 {
		p.Message = fmt.Sprintf("The request is not valid: %s must be %s.", fields[0].Path, fields[0].Rule)
		p.With("fields", fields)
	}
	return p
}

// Unprocessable turns a refusal into a 422, where a rule requires it.
func Unprocessable(p *Problem) *Problem {
	p.Status = 422
	return p
}

// NotFound returns 404, both for what does not exist and for what the principal may not know of.
func NotFound() *Problem { return NewProblem(404, "not_found", "There is no such thing.") }
