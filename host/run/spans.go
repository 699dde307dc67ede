package run

import (
	"context"
	"errors"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// Spans is told when a part of a run begins. The function that it returns
// is called once, at the part's end, with why it failed. It may be called from
// several goroutines. Attributes hold ids and names, never content.
type Spans interface {
	Start(ctx context.Context, name string, attrs map[string]any) (context.Context, func(err error))
}

// A span is a part of a run that somebody traces; nil is one that nobody does.
type span func(error)

func (s span) end(err error) {
	if s != nil {
		s(err)
	}
}

// errno ends the span of a call.
func (s span) errno(e abi.Errno) {
	if e == abi.OK {
		s.end(nil)
		return
	}
	s.end(e)
}

// traced begins a span below that of the run, or of its node. more are pairs of attribute and value.
func (j *journal) traced(name string, more ...any) (context.Context, span) {
	ctx := j.spanned
	if j.deps.Spans == nil {
		return ctx, nil
	}
	attrs := map[string]any{"openwop.run_id": string(j.id), "openwop.workflow_id": j.workflow()}
	for i := 0; i+1 < len(more); i += 2 {
		attrs["openwop."+more[i].(string)] = more[i+1]
	}
	ctx, end := j.deps.Spans.Start(ctx, "openwop."+name, attrs)
	return ctx, end
}

// appended begins the span of a commit's events. Nobody else appends to the
// run's timeline, so their numbers are known.
func (j *journal) appended(events []store.Event) span {
	first := j.sequence
	j.sequence += uint64(len(events))
	if j.deps.Spans == nil || len(events) == 0 {
		return nil
	}
	_, s := j.traced("event.append", "event_type", events[0].Type, "event_seq", first)
	return s
}

// err is why a run failed, for its span; its text is a code.
func (r *Result) err() error {
	if r.Status == abi.Succeeded || r.TerminalReason == nil {
		return nil
	}
	return errors.New(*r.TerminalReason)
}

// workflow is what the run is called where it was asked for.
func (j *journal) workflow() string {
	if id := j.plan.Request.WorkflowID; id != "" {
		return id
	}
	return string(j.plan.Connection.ID)
}

// tracedActivity begins the span of a call that is handled beside the loop.
func (j *journal) tracedActivity(c abi.Call) span {
	if j.deps.Spans == nil {
		return nil
	}
	_, s := j.traced("activity."+activity(c), "node_id", j.plan.manifest.Node())
	return s
}

// activity names a call for a span.
func activity(c abi.Call) string {
	for _, f := range abi.Functions {
		if f.Call == c {
			return f.Name
		}
	}
	if c >= abi.CallFileOpen && c <= abi.CallFileTimes {
		return "file"
	}
	return strconv.Itoa(int(c))
}
