package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/go-github/v88/github"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A trouble is why a part of a run is left out.
type trouble struct {
	reason    string
	hint      string
	retryable bool
	err       error
}

func (t *trouble) Error() string { return t.err.Error() }
func (t *trouble) Unwrap() error { return t.err }

// again is a trouble that may pass; final is one that somebody has to mend.
func again(reason string, err error) error { return &trouble{reason, guest.RetryByRuntime, true, err} }
func final(reason string, err error) error {
	return &trouble{reason, guest.ManualActionRequired, false, err}
}

// limited is a rate limit; nothing more is to be had until then.
type limited struct {
	until time.Time
	err   error
}

func (l *limited) Error() string {
	return fmt.Sprintf("GitHub's rate limit is used up until %s", l.until.UTC().Format(time.RFC3339))
}
func (l *limited) Unwrap() error { return l.err }

const (
	// unsaid is GitHub's advice for a limit that does not say how long.
	unsaid = time.Minute
	// longestLimit keeps nonsense out of messages.
	longestLimit = 24 * time.Hour
)

func limit(wait time.Duration, err error) error {
	return &limited{time.Now().Add(min(max(wait, 0), longestLimit)), err}
}

// classify turns what go-github and the host return into a *limited, a *trouble,
// or what ends the run.
func classify(err error) error {
	if e, ok := errors.AsType[*github.RateLimitError](err); ok {
		return limit(time.Until(e.Rate.Reset.Time), err)
	}
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		if e.RetryAfter == nil {
			return limit(unsaid, err)
		}
		return limit(*e.RetryAfter, err)
	}
	if e, ok := errors.AsType[*github.ErrorResponse](err); ok {
		return status(e.Response, err)
	}
	if e, ok := errors.AsType[*guest.Error](err); ok {
		return refused(e, err)
	}
	var two *github.TwoFactorAuthError
	switch {
	case errors.As(err, &two):
		return status(two.Response, err)
	case errors.Is(err, errExhausted), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errElsewhere), errors.Is(err, github.ErrPathForbidden):
		return final("redirected", err)
	case errors.Is(err, errTooLarge):
		return final("answer_unreadable", err)
	}
	return again("answer_unreadable", err) // cut short, no JSON, or other JSON
}

// status is an answer that says no.
func status(r *http.Response, err error) error {
	wait, told := retryAfter(r.Header)
	switch code := r.StatusCode; {
	case code == http.StatusTooManyRequests ||
		told && (code == http.StatusForbidden || code == http.StatusServiceUnavailable):
		return limit(wait, err)
	case code == http.StatusUnauthorized:
		return guest.Fail("token_refused", false, guest.RefreshCredentials, "GitHub refuses the token: %w", err)
	case code == http.StatusNotFound:
		return final("not_found", err)
	case code == http.StatusForbidden:
		return final("access_denied", err)
	case code == http.StatusUnavailableForLegalReasons:
		return final("blocked", err)
	case code >= 500:
		return again("server_failed", err)
	}
	return final("request_refused", err)
}

// retryAfter is what a header asks for, or a minute.
func retryAfter(h http.Header) (wait time.Duration, told bool) {
	if n, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return time.Until(at), true
	}
	return unsaid, false
}

// refused is a call that the host did not do.
func refused(e *guest.Error, err error) error {
	switch e.Errno {
	case abi.ECANCELED, abi.EPROTO:
		return err
	case abi.EDENIED:
		return guest.Fail("host_not_granted", false, guest.ManualActionRequired,
			"the API may not be reached, or not with this token: %w", err)
	case abi.ERATE:
		var detail struct {
			MS int64 `json:"retry_after_ms"`
		}
		_ = json.Unmarshal(e.Detail, &detail) // without one it is zero
		return limit(time.Duration(min(max(detail.MS, 1000), longestLimit.Milliseconds()))*time.Millisecond, err)
	case abi.ETOOBIG:
		return final("answer_unreadable", err)
	}
	return again("server_unreachable", err)
}

// A noted trouble is left to be reported.
type noted struct {
	*trouble
	stream, name string // name: a repository, or what else is missing
}

// note keeps a trouble for the report, and lets other errors pass.
func (c *collection) note(stream, name string, err error) error {
	t, ok := errors.AsType[*trouble](err)
	if ok {
		c.troubles = append(c.troubles, noted{t, stream, name})
		return nil
	}
	return err
}

// maxNamed is how many names one report lists.
const maxNamed = 100

// report tells what is missing from this run, by stream and reason.
func (c *collection) report() error {
	type group struct{ stream, reason string }
	var order []group
	by := map[group][]noted{}
	for _, t := range c.troubles {
		g := group{t.stream, t.reason}
		if by[g] == nil {
			order = append(order, g)
		}
		by[g] = append(by[g], t)
	}
	for _, g := range order {
		if !c.run.InScope(g.stream) {
			continue
		}
		for all := by[g]; len(all) > 0; {
			some := all[:min(len(all), maxNamed)]
			all = all[len(some):]
			names := make([]string, len(some))
			for i, t := range some {
				names[i] = t.name
			}
			first := some[0]
			message := fmt.Sprintf("%s: %s", first.name, abi.Cut(first.Error(), 500))
			if n := len(some); n > 1 {
				message += fmt.Sprintf(" (and %d more)", n-1)
			}
			err := c.run.Skip(guest.Skip{Stream: g.stream, Reason: g.reason, Message: message,
				RecoveryHint: &guest.Hint{Action: first.hint, Retryable: &first.retryable}, ResourceIDs: names})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
