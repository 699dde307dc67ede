package api

import (
	"bytes"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// forkRun is the body of a fork.
type forkRun struct {
	FromSeq json.RawMessage `json:"fromSeq"`
	Mode    string          `json:"mode" enum:"branch"`
	Overlay *forkOverlay    `json:"runOptionsOverlay,omitempty"`
}

// forkOverlay is what a branch may change.
type forkOverlay struct {
	Inputs       json.RawMessage `json:"inputs,omitempty"`
	Configurable json.RawMessage `json:"configurable,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

type forkedRun struct {
	RunID       store.RunID     `json:"runId"`
	SourceRunID store.RunID     `json:"sourceRunId"`
	FromSeq     int64           `json:"fromSeq"`
	Mode        string          `json:"mode"`
	Status      timeline.Status `json:"status"`
	EventsURL   string          `json:"eventsUrl"`
}

func (a *runAPI) forkRun(c *fiber.Ctx) error {
	if !web.Principal(c).Allows(access.RunsRead) {
		return web.NewProblem(0, "forbidden", "The credential lacks a scope.").With("scopeRequired", access.RunsRead)
	}
	source, err := a.find.run(c)
	if err != nil {
		return err
	}
	var q forkRun
	if err := web.Body(c, &q); err != nil {
		return err
	}
	from, start, err := q.start()
	if err != nil {
		return err
	}
	if q.Mode == "replay" {
		return web.NewProblem(0, "replay_unavailable",
			"This host keeps no recordings of runs, so that none can be replayed.").With("reason", "not_recorded")
	}
	answer := func(r store.Run) forkedRun {
		return forkedRun{r.ID, source.ID, from, q.Mode, timeline.RowStatus(r), a.created(c, r).EventsURL}
	}
	start.With = func(r store.Run) []store.Write {
		body, err := web.Encode(answer(r))
		if err != nil {
			return nil
		}
		return web.SlotOf(c).Writes(201, body, "/v1/runs/"+string(r.ID))
	}
	r, err := a.runs.ForkRun(web.Context(c), host.ForkRun{Source: source.ID, FromSeq: uint64(from), Start: start})
	if p, known := web.ProblemOf(err); err != nil && known && p.Code == "validation_error" {
		return web.Unprocessable(p) // such as a fromSeq beyond the end of the log
	}
	if err != nil {
		return err
	}
	return web.Created(c, "/v1/runs/"+string(r.ID), answer(r))
}

func (q *forkRun) start() (from int64, start host.StartRun, err error) {
	v, parse := strictjson.Parse(q.FromSeq, strictjson.ParseOptions{AnyKind: true})
	from, isInt := v.SafeInteger()
	var wrong []web.Field
	if parse != nil || !isInt || from < 0 {
		wrong = append(wrong, web.Field{Path: "fromSeq", Rule: "a whole number, 0 or more"})
	}
	if q.Mode != "branch" && q.Mode != "replay" {
		wrong = append(wrong, web.Field{Path: "mode", Rule: "branch"})
	}
	if o := q.Overlay; o != nil {
		if q.Mode == "replay" && !empty(*o) {
			wrong = append(wrong, web.Field{Path: "runOptionsOverlay", Rule: "absent with mode replay"})
		}
		start.Request = store.Request{Tags: o.Tags, Metadata: o.Metadata, Configurable: o.Configurable}
		wrong = append(wrong, options(o.Inputs, &start)...)
		wrong = append(wrong, overlay(o.Configurable, &start)...)
		wrong = append(wrong, boundedObject("runOptionsOverlay.metadata", o.Metadata)...)
		wrong = append(wrong, boundedObject("runOptionsOverlay.configurable", o.Configurable)...)
		if !tagsFit(o.Tags) {
			wrong = append(wrong, web.Field{Path: "runOptionsOverlay.tags", Rule: tagRule})
		}
	}
	if len(wrong) > 0 {
		return 0, start, web.Invalid(wrong...)
	}
	return from, start, nil
}

func empty(o forkOverlay) bool {
	return len(bytes.TrimSpace(o.Inputs)) <= 2 && len(bytes.TrimSpace(o.Configurable)) <= 2 && len(o.Tags) == 0 &&
		len(o.Metadata) == 0
}
