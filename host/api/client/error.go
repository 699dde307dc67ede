package client

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// An Error is what a host refused, or failed at.
type Error struct {
	Status  int
	Code    string // http_error when the answer was not one of the API
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

// Is makes what the host does not know store.ErrNotFound, as the application has it.
func (e *Error) Is(target error) bool {
	return target == store.ErrNotFound && e.Status == http.StatusNotFound
}

// As makes what the host refused a *host.Refusal, as the application has it.
func (e *Error) As(target any) bool {
	r, ok := target.(**host.Refusal)
	if ok {
		*r = &host.Refusal{Code: e.Code, Message: e.Message, Details: e.Details}
	}
	return ok
}

// errorOf reads an answer that is no success.
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
