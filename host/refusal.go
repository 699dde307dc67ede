package host

import "fmt"

// A Refusal is why a service did not do what it was asked. Code is an error code
// of the API or of a run's start (docs/spec/api.md, docs/spec/runs.md). Message is
// for people and holds no submitted value.
type Refusal struct {
	Code    string
	Message string
	Details map[string]any
}

func (e *Refusal) Error() string { return e.Code + ": " + e.Message }

// Refuse makes a Refusal.
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds a detail.
func (e *Refusal) With(key string, value any) *Refusal {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}
