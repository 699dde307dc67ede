package client

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// An Error is an error that a host answered.
type Error struct {
	Status  int
	Code    string // http_error for an answer that is not the API's
	Message string
	Details map[string]any
}

func (e *Error) Error() string { return e.Message }

// Detail returns the more exact code that a common code stands for, or the code
// itself.
func (e *Error) Detail() string {
	if code, ok := e.Details["code"].(string); ok && code != "" {
		return code
	}
	return e.Code
}

// Is reports whether target is store.ErrNotFound and the status is 404.
func (e *Error) Is(target error) bool {
	return target == store.ErrNotFound && e.Status == http.StatusNotFound
}

// As converts the error to a *host.Refusal, which the application returns.
func (e *Error) As(target any) bool {
	r, ok := target.(**host.Refusal)
	if ok {
		*r = &host.Refusal{Code: e.Code, Message: e.Message, Details: e.Details}
	}
	return ok
}

// errorOf reads the error from an unsuccessful answer.
func errorOf(res *http.Response) *Error {
	e := &Error{Status: res.StatusCode}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxError))
	var envelope struct {
		Error   string         `json:"error"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	}
	if err != nil || json.Unmarshal(b, &envelope) != nil || envelope.Error == "" {
		e.Code, e.Message = "http_error", "what answered is no Sluice host: it said "+res.Status
		return e
	}
	e.Code, e.Message, e.Details = envelope.Error, envelope.Message, envelope.Details
	return e
}
