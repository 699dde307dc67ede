package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// gates decides whether a due tick may start a run.
type gates struct {
	*lifetime
	source    Source
	documents *documents
	marks     *marks
	limit     time.Duration // for all gates together
}

// A verdict is the result of the gates for a due tick.
type verdict struct {
	gate    int    // the gate that refuses; 0 for none
	cause   string // not recorded twice in a row
	message string // error of the skip record
	reason  string // terminal_reason of the skip record
	conn    Connection
}

// The gates of a due time, in order (docs/spec/runs.md, "Gates"). The first that refuses decides.
const (
	gateConsumed = 1 + iota
	gateGrant
	gateActive
	gateAttention
	gatePolicy
	gateReady
	gateBackoff
)

// judge evaluates the gates. It only reads, except that it clears an outdated mark.
func (gs *gates) judge(ctx context.Context, id store.ConnectionID, d document, now time.Time) (verdict, error) {
	conn, err := gs.source.ScheduledConnection(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		conn, err = Connection{NotReady: "connection_not_found"}, nil
	}
	if err != nil {
		return verdict{}, fmt.Errorf("look at connection %s: %w", id, err)
	}
	v := verdict{conn: conn}
	if consumed(conn.Grant) {
		return v.refuse(gateConsumed, "", "single_use grant already consumed"), nil
	}
	if reason := d.unusable(conn.Grant, now); reason != "" {
		v.reason = reason
		return v.refuse(gateGrant, reason, reason+" grant no longer usable"), nil
	}
	switch run, err := gs.documents.active(ctx, id); {
	case err != nil:
		return v, err
	case run != "" || d.Open != nil:
		return v.refuse(gateActive, "", ""), nil
	}
	switch needs, err := gs.marks.NeedsAttention(ctx, id); {
	case err != nil:
		return v, err
	case needs:
		return v.refuse(gateAttention, "needs_human_attention",
			"needs_human_attention: an automatic run asked a question; answer it, run by hand, or dismiss the mark"), nil
	}
	if reason := conn.Policy.Refuses(); reason != "" {
		return v.refuse(gatePolicy, "automation_policy_blocked: "+reason, "automation_policy_blocked: "+reason), nil
	}
	if conn.NotReady != "" {
		return v.refuse(gateReady, "not_ready: "+conn.NotReady, "not_ready: "+conn.NotReady), nil
	}
	return gs.backoff(v, d)
}

// backoff refuses a slot within the back-off of a streak of failures. It compares slots, so neither
// jitter nor start delays count.
func (gs *gates) backoff(v verdict, d document) (verdict, error) {
	state := d.Streak.state()
	if state == "" {
		return v, nil
	}
	const applied = "scheduler_backoff_applied: "
	failures := fmt.Sprintf("%d times in a row %s", d.Streak.Count, d.Streak.Class)
	if state == Blocked {
		return v.refuse(gateBackoff, applied+state,
			applied+"blocked after "+failures+"; resume the schedule, or run by hand"), nil
	}
	t, err := timetableOf(d.Definition)
	if err != nil {
		return v, err
	}
	until, err := d.Streak.until(t)
	if err != nil || !d.Slot.Before(until) {
		return v, err
	}
	return v.refuse(gateBackoff, applied+state, applied+"cooling_off until "+store.Time(until)+" after "+failures), nil
}

func (v verdict) refuse(gate int, cause, message string) verdict {
	v.gate, v.cause, v.message = gate, cause, message
	return v
}

// consumed reports whether a single-use grant was consumed by a run.
func consumed(g *store.Grant) bool {
	return g != nil && g.AccessMode == "single_use" && g.Status == "consumed"
}

// unusable returns why a schedule may not use its grant: it is not usable now, or it refused a run
// and was not approved again. It returns "" if it is usable.
func (d document) unusable(g *store.Grant, now time.Time) string {
	fault := g.Fault(now)
	if d.Grant == nil || fault == "" && d.Grant.Restarted {
		return fault
	}
	return d.Grant.Reason
}

func grantCode(code string) bool {
	switch code {
	case "grant_consumed", "grant_expired", "grant_invalid", "grant_revoked":
		return true
	}
	return false
}

// errWedged means that the gates did not answer within gates.limit.
var errWedged = errors.New("scheduler_dispatch_wedged")

// judgeWithin is judge with a time limit of gates.limit. It propagates a panic of judge.
func (gs *gates) judgeWithin(id store.ConnectionID, d document, now time.Time) (verdict, error) {
	type answer struct {
		v        verdict
		err      error
		panicked any
	}
	ctx, cancel := context.WithTimeout(gs.ctx, gs.limit)
	defer cancel()
	said := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.panicked = p
			}
			said <- a
		}()
		a.v, a.err = gs.judge(ctx, id, d, now)
	}()
	select {
	case a := <-said:
		if a.panicked != nil {
			panic(a.panicked)
		}
		if a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return a.v, errWedged
		}
		return a.v, a.err
	case <-ctx.Done():
		if gs.ctx.Err() != nil {
			return verdict{}, gs.ctx.Err()
		}
		return verdict{}, errWedged
	}
}

// skip returns the record of a tick that a gate refused.
func (v verdict) skip(id store.ConnectionID, now time.Time, catchUp bool) host.Tick {
	return host.Tick{
		Status: skipped, ConnectorID: string(v.conn.ConnectorID), ConnectionID: string(id),
		Source: sourceOf(v.conn.ConnectorID), StartedAt: now, CompletedAt: now, RecordsEmitted: new(int64),
		TerminalReason: v.reason, Error: v.message, TriggerKind: "scheduled", CatchUp: catchUp,
	}
}
