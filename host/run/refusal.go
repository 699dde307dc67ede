package run

import "fmt"

// A Refusal says why a run was not started: a code of runtime.md §6.1, or of
// §21 for a run that could not be launched. No guest ran.
type Refusal struct {
	Code    string
	Message string
	Details map[string]any
	Err     error
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }
func (e *Refusal) Unwrap() error { return e.Err }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Refusal) with(key string, value any) *Refusal {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// A LaunchError is a failure between acceptance and run.started.
type LaunchError struct {
	Code string // failure_code: module_invalid, isolation_unavailable, …
	Err  error
}

func (e *LaunchError) Error() string { return e.Code + ": " + e.Err.Error() }
func (e *LaunchError) Unwrap() error { return e.Err }
