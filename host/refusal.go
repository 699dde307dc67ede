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

// A Fault is a member of a request that is wrong, and by which rule.
type Fault struct {
	Path string `json:"path"`
	Rule string `json:"rule"`
}

// Invalid refuses a request for one member. The text is the host's own: it holds
// nothing that was submitted.
func Invalid(path, rule, format string, args ...any) *Refusal {
	return Refuse("validation_error", "%s: %s", path, fmt.Sprintf(format, args...)).With("fields", []Fault{{path, rule}})
}

// NotRequested refuses an approval of what the connector does not ask for.
func NotRequested(path string) *Refusal {
	return Refuse("binding_not_requested", "%s: the connector does not ask for this", path).With("fields", []Fault{{path, "binding_not_requested"}})
}
