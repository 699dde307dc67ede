package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// follow waits for the run of an open tick, tries again what may be tried again,
// and records the tick when its outcome is final. It returns
// early, with the tick open, when the scheduler stops before the run ends.
func (s *Scheduler) follow(id store.ConnectionID, o open) {
	for {
		run, res, err := s.ended(&o)
		var next *open
		if err == nil {
			next, err = s.again(id, o, run, res)
		}
		switch {
		case next != nil:
			o = *next
			continue
		case errors.Is(err, errLater):
			return
		case errors.Is(err, store.ErrNotFound):
			err = s.drop(id, o) // the connection was erased
		case err == nil:
			err = s.finish(id, o, run, res)
		}
		if err == nil || s.ctx.Err() != nil {
			return
		}
		s.d.Log.Error("tick is followed again", "connection", id, "run", o.RunID, "error", err)
		if !s.sleep(againAfter) {
			return
		}
	}
}

// ended waits until a run is over. Meanwhile it heeds its questions.
func (s *Scheduler) ended(o *open) (store.Run, result, error) {
	wake, stop := s.d.Store.Watch(o.RunID)
	defer stop()
	for {
		run, err := s.d.Store.Run(s.ctx, o.RunID)
		if err != nil {
			return run, result{}, fmt.Errorf("read run %s: %w", o.RunID, err)
		}
		if err := s.heed(s.ctx, run, o); err != nil {
			return run, result{}, err
		}
		if run.Status != "active" {
			res, err := resultOf(run)
			return run, res, err
		}
		select {
		case <-wake:
		case <-s.ctx.Done():
			return run, result{}, s.ctx.Err()
		}
	}
}

// errLater: the tick stays open, for the next start of the host.
var errLater = errors.New("the host is stopping")

// again waits before the next attempt and starts another attempt. nil
// when there is to be none: then the last failure stands. errLater for a
// run that ended only because this host does.
func (s *Scheduler) again(id store.ConnectionID, o open, run store.Run, res result) (*open, error) {
	d, err := s.load(s.ctx, id)
	if errors.As(err, new(*host.Refusal)) || errors.Is(err, errUnreadable) {
		return nil, nil
	}
	if err != nil || !res.retryable() || int64(o.Attempt) > d.Definition.MaxRetries || !d.Definition.Enabled {
		return nil, err
	}
	if s.stopped() && res.reason() == "controller_restarted" {
		return nil, errLater
	}
	if s.stopped() || !s.sleep(retryWait(o.Attempt)) {
		return nil, nil
	}
	return s.retry(id, o, run)
}

// sleep reports whether the scheduler still starts runs after a while.
func (s *Scheduler) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !s.stopped()
	case <-s.stopping:
		return false
	case <-s.ctx.Done():
		return false
	}
}

// retry starts the next attempt as a run of its own. nil when it may not
// start: then the last failure stands.
func (s *Scheduler) retry(id store.ConnectionID, o open, failed store.Run) (*open, error) {
	conn, err := s.d.Source.ScheduledConnection(s.ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at connection %s: %w", id, err)
	}
	for try := 1; ; try++ {
		d, err := s.load(s.ctx, id)
		if errors.As(err, new(*host.Refusal)) || errors.Is(err, errUnreadable) {
			return nil, nil // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if s.stopped() || !d.Definition.Enabled || d.Poisoned || d.Open == nil || d.Open.RunID != failed.ID {
			return nil, nil // paused, replaced or recorded meanwhile
		}
		next, err := s.attempt(id, d, o, failed, conn.Policy.Automation())
		if errors.As(err, new(*store.ConflictError)) && try < attempts {
			continue
		}
		return next, err
	}
}

func (s *Scheduler) attempt(id store.ConnectionID, d document, o open, failed store.Run, mode string) (*open, error) {
	o.Attempt++
	o.Read = 0
	start := Start{Connection: id, Trigger: "retry", Attempt: o.Attempt, RetryOf: failed.ID, CatchUp: o.CatchUp, AutomationMode: mode}
	start.With = func(r store.Run) []store.Write {
		o.RunID = r.ID
		d.startedAt(r)
		d.Open = &o
		return []store.Write{d.write(id)}
	}
	_, err := s.d.Starter.StartScheduled(s.ctx, start)
	var no *Refused
	switch {
	case errors.As(err, &no) && no.Code == "run_already_active":
		return nil, nil
	case errors.As(err, &no) && grantCode(no.Code):
		return nil, s.disable(id, no.Code)
	case errors.As(err, &no):
		_, err = s.d.Starter.RecordRefused(s.ctx, start, no)
	}
	if err != nil {
		return nil, fmt.Errorf("start attempt %d of %s: %w", o.Attempt, id, err)
	}
	s.d.Changed(id)
	return &o, nil
}

// disable notes that a grant refused a run; the next due time says so.
func (s *Scheduler) disable(id store.ConnectionID, reason string) error {
	_, err := s.change(s.ctx, id, func(d *document) ([]store.Write, error) {
		d.Grant = &disabled{Reason: reason}
		return nil, nil
	})
	return err
}

// finish records a tick whose outcome is final, once. Its schedule may be
// gone by then, or another one be in its place; the record stays.
func (s *Scheduler) finish(id store.ConnectionID, o open, run store.Run, res result) error {
	t, err := tickOf(run, res)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := s.close(id, o, run, res, t)
		switch {
		case err == nil:
			s.d.Done(t)
			return nil
		case errors.Is(err, errRecorded):
			return nil
		case !errors.As(err, new(*store.ConflictError)) || try == attempts:
			return err
		}
	}
}

// errRecorded: an attempt to write the record that seemed to fail had not.
var errRecorded = errors.New("recorded already")

func (s *Scheduler) close(id store.ConnectionID, o open, run store.Run, res result, t host.Tick) error {
	d, err := s.load(s.ctx, id)
	here := err == nil && d.Open != nil && d.Open.RunID == o.RunID
	if err != nil && !errors.As(err, new(*host.Refusal)) && !errors.Is(err, errUnreadable) {
		return err
	}
	if !here {
		if done, err := s.recorded(s.ctx, id, run.ID); err != nil || done {
			return cmp.Or(err, errRecorded)
		}
	}
	writes, err := s.record(s.ctx, id, t)
	if err != nil {
		return err
	}
	if here {
		d.Open = nil
		d.finished(run)
		d.Streak = d.Streak.after(t, o.At)
		if grantCode(res.reason()) {
			d.Grant = &disabled{Reason: res.reason()}
		}
		writes = append(writes, d.write(id))
	}
	if err := s.d.Store.Write(s.ctx, writes...); err != nil {
		return fmt.Errorf("record tick of %s: %w", id, err)
	}
	if here {
		d.stored++
		s.plan(id, d)
	}
	return nil
}

// drop forgets an open tick whose run nobody has any more.
func (s *Scheduler) drop(id store.ConnectionID, o open) error {
	_, err := s.change(s.ctx, id, func(d *document) ([]store.Write, error) {
		if d.Open == nil || d.Open.RunID != o.RunID {
			return nil, errUnchanged
		}
		d.Open = nil
		return nil, nil
	})
	if errors.As(err, new(*host.Refusal)) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// retryWait is how long a failed attempt waits for the next.
func retryWait(attempt int) time.Duration {
	const first, longest = time.Second, 30 * time.Second
	if attempt > 5 {
		return longest
	}
	return min(first<<(max(attempt, 1)-1), longest)
}

// retryable says whether another attempt may help; the first case that matches wins
// (docs/spec/runs.md, "Retries").
func (r result) retryable() bool {
	switch {
	case r.Status != abi.Failed: // 1
		return false
	case slices.ContainsFunc(r.KnownGaps, gap.wantsOwner): // 2
		return false
	case r.wantsAuthorization(): // 3
		return false
	case r.refusedBySink(), r.clientError(): // 4
		return false
	case slices.Contains(hopeless, r.reason()): // 5
		return false
	case r.reason() == "launch_failed" && !slices.Contains(passing, r.subtype()): // 5
		return false
	case slices.ContainsFunc(r.KnownGaps, gap.wantsRetry): // 6
		return true
	case r.ConnectorError != nil && r.ConnectorError.Retryable != nil && !*r.ConnectorError.Retryable: // 7
		return false
	}
	return true // 8
}

// hopeless are reasons that another attempt ends with too (row 5).
var hopeless = []string{
	"connector_protocol_violation", "authentication_error", "permission_error",
	"grant_consumed", "grant_expired", "grant_invalid", "grant_revoked",
	"connector_invalid", "run_timed_out", "assistance_timed_out", "memory_limit_exceeded", "worker_protocol_error",
}

// passing are failure codes of a launch that another may not meet (row 5).
var passing = []string{"host_resources", "prepare_timeout", "surface_start_failed"}

func (r result) subtype() string {
	if r.Failure == nil {
		return ""
	}
	return r.Failure.Subtype
}

func (g gap) wantsOwner() bool {
	return g.Hint.Action == abi.ManualActionRequired || g.Hint.Action == abi.RefreshCredentials
}

func (g gap) wantsRetry() bool {
	return g.Kind == "run_failed" && g.Hint.Action == abi.RetryByRuntime && g.Hint.Retryable
}

// authorizationWords are those of row 3.
var authorizationWords = []string{
	"401", "403", "auth_missing", "credential_required", "credentials_required", "credential_rejected", "invalid_token",
	"manual_action_required", "reauth", "session_expired", "session_failed", "session_required", "unauthorized", "forbidden",
}

// wantsAuthorization is row 3: a connector that gave no hint says in words that
// it was not let in.
func (r result) wantsAuthorization() bool {
	e := r.ConnectorError
	if e == nil || e.RecoveryHint != nil || e.Retryable != nil && *e.Retryable {
		return false
	}
	return slices.ContainsFunc(words(e.Code+" "+e.Message), func(w string) bool { return slices.Contains(authorizationWords, w) })
}

// words are runs of letters, digits and underscores, in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_'
	})
}

// sinkRetries are the reasons of a sink that was throttled or failed; any other
// code of it is a refusal.
var sinkRetries = []string{
	"rate_limit_error", "ingest_http_error", "ingest_storage_error", "ingest_response_invalid", "ingest_envelope_contract_violation",
	"runtime_error", "controller_restarted",
}

func (r result) refusedBySink() bool {
	return r.Failure != nil && (r.Failure.Origin == "storage" || r.Failure.Origin == "transport") && !slices.Contains(sinkRetries, r.reason())
}

// clientError: the connector reports a status 400 to 499 as its code, except 429.
func (r result) clientError() bool {
	if r.ConnectorError == nil {
		return false
	}
	code := strings.TrimPrefix(strings.ToLower(r.ConnectorError.Code), "http_")
	return len(code) == 3 && code[0] == '4' && strings.Trim(code, "0123456789") == "" && code != "429"
}
