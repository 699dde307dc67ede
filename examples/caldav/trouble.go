package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Why something is left out of a run, as the manifest explains it.
const (
	reasonLogin       = "authentication_failed"
	reasonHost        = "host_not_granted"
	reasonSecret      = "secret_not_granted"
	reasonBusy        = "server_busy"
	reasonUnavailable = "server_unavailable"
	reasonRefused     = "refused"
	reasonMalformed   = "malformed_answer"
	reasonTooLarge    = "too_large"
	reasonNotOffered  = "not_offered"
)

// A trouble is why something is left out of a run.
type trouble struct {
	reason    string
	hint      string
	retryable bool
	status    int // of the server; 0 when it did not answer
	err       error
}

func (t *trouble) Error() string { return t.err.Error() }
func (t *trouble) Unwrap() error { return t.err }

func troublef(reason, format string, args ...any) *trouble {
	t := &trouble{reason: reason, hint: guest.ManualActionRequired, err: fmt.Errorf(format, args...)}
	switch reason {
	case reasonBusy, reasonUnavailable, reasonMalformed:
		t.hint, t.retryable = guest.RetryByRuntime, true
	case reasonLogin:
		t.hint = guest.RefreshCredentials
	}
	return t
}

// refusedBy says what a status means.
func refusedBy(r *http.Response, what string) *trouble {
	t := statusTrouble(r, what)
	t.status = r.StatusCode
	return t
}

func statusTrouble(r *http.Response, what string) *trouble {
	switch code := r.StatusCode; {
	case code == http.StatusUnauthorized:
		return troublef(reasonLogin, "%s: the server does not accept user and password (%s)", what, r.Status)
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		return troublef(reasonBusy, "%s: the server answers %s", what, r.Status)
	case code >= 500:
		return troublef(reasonUnavailable, "%s: the server answers %s", what, r.Status)
	}
	return troublef(reasonRefused, "%s: the server answers %s", what, r.Status)
}

// unsent says why a request has no answer, and lets a cancelled run end.
func unsent(err error, what string) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // it would name method and URL again
	}
	e, _ := errors.AsType[*guest.Error](err)
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, abi.EPROTO):
		return err
	case errors.Is(err, abi.EDENIED) && e.Code == "sealed_destination_denied":
		return troublef(reasonSecret, "%s; --secret-to names a server for it", e.Message)
	case errors.Is(err, abi.EDENIED):
		return troublef(reasonHost, "%s: %w", what, err)
	case errors.Is(err, abi.ERATE):
		return troublef(reasonBusy, "%s: %w", what, err)
	case errors.Is(err, abi.ETOOBIG):
		return troublef(reasonTooLarge, "%s: %w", what, err)
	}
	return troublef(reasonUnavailable, "%s: %w", what, err)
}

// lasting reports whether another request would fail as well, so that trying another
// way gains nothing.
func lasting(err error) bool {
	t, ok := errors.AsType[*trouble](err)
	if !ok {
		return true
	}
	switch t.reason {
	case reasonLogin, reasonHost, reasonSecret, reasonBusy:
		return true
	}
	return false
}

// maxReports bounds the messages of one kind.
const maxReports = 50

// skip tells what is missing from streams in scope.
func (c *collector) skip(streams []*stream, resource string, t *trouble) error {
	c.reports[t.reason]++
	if c.reports[t.reason] > maxReports {
		return nil
	}
	for _, s := range streams {
		skip := guest.Skip{Stream: s.name, Reason: t.reason, Message: abi.Cut(t.Error(), 2000),
			RecoveryHint: &guest.Hint{Action: t.hint, Retryable: &t.retryable}}
		if resource != "" && len(resource) <= 200 {
			skip.ResourceIDs = []string{resource}
		}
		if err := c.run.Skip(skip); err != nil {
			return err
		}
	}
	return nil
}

// skipRest counts what skip left out.
func (c *collector) skipRest() error {
	for reason, n := range c.reports {
		if n <= maxReports {
			continue
		}
		if err := c.run.Skip(guest.Skip{Reason: reason,
			Message: fmt.Sprintf("And %d more of the %ss.", n-maxReports, c.kind.name)}); err != nil {
			return err
		}
	}
	return nil
}
