package host

import "fmt"

// A Refusal is an expected error of a service. Code is an error code of the API or of a
// run's start (docs/spec/api.md, docs/spec/runs.md). Message is for people and contains no
// submitted value.
type Refusal struct {
	Code    string
	Message string
	Details map[string]any
}

func (e *Refusal) Error() string { return e.Code + ": " + e.Message }

func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With adds a detail and returns e.
func (e *Refusal) With(key string, value any) *Refusal {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// A Fault names an invalid member of a request and the rule that it breaks.
type Fault struct {
	Path string `json:"path"`
	Rule string `json:"rule"`
}

// Invalid refuses a request because of one member. The text must contain nothing that was
// submitted.
func Invalid(path, rule, format string, args ...any) *Refusal {
	return Refuse("validation_error", "%s: %s", path, fmt.Sprintf(format, args...)).With("fields", []Fault{{path, rule}})
}

// NotRequested refuses an approval of something that the connector does not ask for.
func NotRequested(path string) *Refusal {
	return Refuse("binding_not_requested", "%s: the connector does not ask for this", path).With("fields",
		[]Fault{{path, "binding_not_requested"}})
}
