package api

import (
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
)

// eventAPI has the routes of a run's events: followed, listed, polled.
type eventAPI struct {
	find    lookup
	streams *stream.Hub
}

func (a *eventAPI) routes() []route {
	vocabulary := parameter{name: "vocabulary", typ: "string", text: "openwop leaves out events of the run protocol.",
		words: []string{"full", "openwop"}}
	return documented("api.md#server-sent-events", []route{
		{Route: web.Route{Method: "GET", Path: "/v1/runs/:runId/events", Scope: access.RunsRead, Stream: true,
			Handle: a.events},
			summary: "Follow a run as server-sent events, or list its events as JSON",
			headers: []string{"Last-Event-ID", "Accept"},
			answer:  stream.Page{}, media: "text/event-stream",
			query: []parameter{
				{name: "streamMode", typ: "string",
					text: "One or more of updates, values, messages, debug, with commas; updates by default."},
				{name: "bufferMs", typ: "integer", text: "0 to 5000: frames of that time are sent together."},
				vocabulary,
				{name: "lastEventId", typ: "string", text: "Last-Event-ID, for clients that cannot set headers."},
				{name: "after", typ: "integer", text: "JSON: only events behind this sequence."},
				{name: "before", typ: "integer", text: "JSON: only events before this sequence."},
				{name: "limit", typ: "integer", text: "JSON: at most so many."},
				{name: "types", typ: "string", text: "JSON: event types with commas; a trailing * matches a prefix."},
			}, codes: []string{"unsupported_stream_mode", "events_expired", "rate_limited"}},
		{Route: web.Route{Method: "GET", Path: "/v1/runs/:runId/events/poll", Scope: access.RunsRead, Handle: a.poll},
			see: "api.md#polling-and-json", summary: "Wait for events of a run", answer: stream.Page{},
			query: []parameter{
				{name: "lastSequence", typ: "integer", text: "Exclusive; from the start when absent."},
				{name: "timeout", typ: "integer", text: "Seconds, 1 to 60; 30 by default."}, vocabulary,
			}, codes: []string{"events_expired", "rate_limited"}},
	})
}

// events follows a run or lists its events. Parameters are checked before the Accept header.
func (a *eventAPI) events(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	q := stream.Query{Run: r.ID, Modes: timeline.Updates}
	if err := refuseBlank(c, "bufferMs", "vocabulary", "types", "after", "before", "limit"); err != nil {
		return err
	}
	args := c.Context().QueryArgs()
	if args.Has("streamMode") {
		if q.Modes, err = timeline.ParseModes(string(args.Peek("streamMode"))); err != nil {
			return refuse(err)
		}
	}
	if q.Buffer, err = stream.ParseBuffer(string(args.Peek("bufferMs"))); err != nil {
		return refuse(err)
	}
	if q.OpenwopOnly, err = timeline.ParseVocabulary(string(args.Peek("vocabulary"))); err != nil {
		return refuse(err)
	}
	list, err := listQuery(c, q)
	if err != nil {
		return refuse(err)
	}
	switch accepts(c.Get(fiber.HeaderAccept)) {
	case "application/json":
		page, err := a.streams.List(web.Context(c), list)
		if err != nil {
			return refuse(err)
		}
		return web.JSON(c, 200, page)
	case "":
		return web.NewProblem(0, "not_acceptable", "Events come as text/event-stream or application/json.")
	}
	q.After = stream.ParseLastEventID(lastEventID(c))
	s, err := a.streams.Subscribe(web.Context(c), client(c), q)
	if err != nil {
		return refuse(err)
	}
	err = web.Follow(c, stream.ContentType, s.Serve)
	if err != nil {
		s.Close()
	}
	return err
}

// refuseBlank refuses parameters without a value, since treating them as absent would answer
// another question. A blank lastEventId counts as an invalid id and is not refused here.
func refuseBlank(c *fiber.Ctx, names ...string) error {
	args := c.Context().QueryArgs()
	for _, name := range names {
		if args.Has(name) && len(args.Peek(name)) == 0 {
			return web.Invalid(web.Field{Path: "query." + name, Rule: "absent, or with a value"})
		}
	}
	return nil
}

// lastEventID returns the header, or the parameter for clients that cannot set headers.
func lastEventID(c *fiber.Ctx) string {
	if h := c.Get("Last-Event-ID"); h != "" {
		return strings.Clone(h)
	}
	return string(c.Context().QueryArgs().Peek("lastEventId"))
}

func listQuery(c *fiber.Ctx, s stream.Query) (q stream.ListQuery, err error) {
	args := c.Context().QueryArgs()
	q.Run = s.Run
	if q.Types, err = timeline.ParseTypes(string(args.Peek("types"))); err != nil {
		return q, err
	}
	q.Types.OpenwopOnly = s.OpenwopOnly
	if q.After, err = stream.ParseSequence("after", string(args.Peek("after"))); err != nil {
		return q, err
	}
	if q.Before, err = stream.ParseSequence("before", string(args.Peek("before"))); err != nil {
		return q, err
	}
	q.Limit, err = stream.ParseLimit(string(args.Peek("limit")))
	return q, err
}

// accepts chooses the media type for an Accept header: an event stream if it is accepted, otherwise
// JSON if that is, otherwise "".
func accepts(header string) string {
	if strings.TrimSpace(header) == "" {
		return "text/event-stream"
	}
	json := false
	for part := range strings.SplitSeq(header, ",") {
		media, params, _ := strings.Cut(part, ";")
		if hasZeroQuality(params) {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(media)) {
		case "text/event-stream", "text/*", "*/*":
			return "text/event-stream"
		case "application/json", "application/*":
			json = true
		}
	}
	if json {
		return "application/json"
	}
	return ""
}

// hasZeroQuality reports whether parameters say q=0: not acceptable.
func hasZeroQuality(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		if name, q, ok := strings.Cut(strings.TrimSpace(p), "="); ok && strings.EqualFold(name, "q") {
			return strings.Trim(q, "0.") == ""
		}
	}
	return false
}

func client(c *fiber.Ctx) stream.Client {
	return stream.Client{Key: web.Principal(c).ID, Check: web.Recheck(c)}
}

func (a *eventAPI) poll(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	if err := refuseBlank(c, "lastSequence", "timeout", "vocabulary"); err != nil {
		return err
	}
	args := c.Context().QueryArgs()
	q := stream.PollQuery{Run: r.ID}
	if q.After, err = stream.ParseSequence("lastSequence", string(args.Peek("lastSequence"))); err != nil {
		return refuse(err)
	}
	if q.Timeout, err = stream.ParseTimeout(string(args.Peek("timeout"))); err != nil {
		return refuse(err)
	}
	if q.OpenwopOnly, err = timeline.ParseVocabulary(string(args.Peek("vocabulary"))); err != nil {
		return refuse(err)
	}
	page, err := a.streams.Poll(web.PollContext(c), client(c), q)
	if err != nil {
		return refuse(err)
	}
	return web.JSON(c, 200, page)
}

// refuse translates errors of timeline and stream to problems.
func refuse(err error) error {
	var (
		mode      *timeline.ModeError
		parameter *timeline.ParameterError
		expired   *stream.ExpiredError
		limit     *stream.LimitError
	)
	switch {
	case errors.As(err, &mode):
		return web.NewProblem(0, "unsupported_stream_mode", "The stream mode is not supported.").
			With("supported", mode.Supported)
	case errors.As(err, &parameter):
		return web.Invalid(web.Field{Path: "query." + parameter.Name, Rule: parameter.Rule})
	case errors.As(err, &expired):
		p := web.NewProblem(0, "events_expired",
			"The events of this run were deleted; the run itself is still listed.").With("retentionFloor",
			expired.RetentionFloor)
		if expired.LastEventID != nil {
			p.With("lastEventId", *expired.LastEventID)
		}
		return p
	case errors.As(err, &limit):
		p := web.NewProblem(0, "rate_limited", "There are too many subscribers.").
			With("scope", limit.Scope).With("limit", limit.Limit).With("retryAfterMs", 1000)
		p.RetryAfter = time.Second
		return p
	case errors.Is(err, stream.ErrClosed):
		return web.NewProblem(0, "unavailable", "The host is stopping.")
	}
	return err
}
