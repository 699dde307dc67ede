package api

import (
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// bundle is everything about a run that may be shown.
type bundle struct {
	BundleVersion    string            `json:"bundleVersion"`
	GeneratedAt      string            `json:"generatedAt"`
	Host             implementation    `json:"host"`
	Run              timeline.Snapshot `json:"run"`
	Events           []timeline.Doc    `json:"events"`
	Spans            []struct{}        `json:"spans"`
	Metrics          bundleMetrics     `json:"metrics"`
	RedactionApplied bool              `json:"redactionApplied"`
	RedactionMode    string            `json:"redactionMode"`
	Truncated        bool              `json:"truncated,omitempty"`
	TruncatedReason  string            `json:"truncatedReason,omitempty"`
}

type bundleMetrics struct {
	EventCount int `json:"eventCount"`
	NodeCount  int `json:"nodeCount"`
}

// maxBundle bounds the events of a bundle.
const maxBundle = 8 << 20

// bundleAPI has the route of the debug bundle.
type bundleAPI struct {
	find           lookup
	events         store.Timelines
	streams        *stream.Hub
	implementation implementation
	now            func() time.Time
}

func (a *bundleAPI) routes() []route {
	return []route{
		{Route: web.Route{Method: "GET", Path: "/v1/runs/:runId/debug-bundle", Scope: access.RunsRead,
			Handle: a.debugBundle},
			see:     "api.md#artifacts-and-debug-bundle",
			summary: "Everything about a run that may be shown, in one document", answer: bundle{},
			codes: []string{"events_expired"}},
	}
}

func (a *bundleAPI) debugBundle(c *fiber.Ctx) error {
	r, err := a.find.run(c)
	if err != nil {
		return err
	}
	b := bundle{
		BundleVersion: "1", GeneratedAt: store.Time(a.now()), Host: a.implementation, Spans: []struct{}{},
		RedactionApplied: true, RedactionMode: "mask",
	}
	if b.Run, err = a.streams.Snapshot(web.Context(c), r.ID); err != nil {
		return err
	}
	b.Run.Variables, b.Run.Channels, b.Run.Configurable, b.Run.Metadata = nil, nil, nil, nil
	if b.Events, b.Truncated, err = a.wholeLog(c, r.ID); err != nil {
		return err
	}
	if b.Truncated {
		b.TruncatedReason = "The log is larger than 8 MiB: the oldest events that do not change the state of the run were left out."
	}
	b.Metrics = bundleMetrics{EventCount: len(b.Events), NodeCount: len(b.Run.NodeStates)}
	return web.JSON(c, 200, b)
}

// wholeLog reads a log to its end. Beyond maxBundle it omits the oldest events that do not change
// the run's state, and cut reports that.
func (a *bundleAPI) wholeLog(c *fiber.Ctx, run store.RunID) (docs []timeline.Doc, cut bool, err error) {
	size, next := 0, uint64(0)
	docs = []timeline.Doc{}
	for {
		events, err := a.events.Events(web.Context(c), run, next, 1000)
		if err != nil {
			return nil, false, err
		}
		for _, e := range events {
			d := timeline.Document(e)
			docs = append(docs, d)
			size += docSize(d)
			next = e.Sequence + 1
		}
		docs = slices.DeleteFunc(docs, func(d timeline.Doc) bool {
			if size <= maxBundle || lifecycle(d.Type) {
				return false
			}
			size -= docSize(d)
			cut = true
			return true
		})
		if len(events) < 1000 {
			return docs, cut, nil
		}
	}
}

func docSize(d timeline.Doc) int { return len(d.Payload) + 400 }

// lifecycle reports whether a type changes the run's state.
func lifecycle(t timeline.Type) bool {
	e, known := timeline.Lookup(t)
	return known && e.Modes.Has(timeline.Updates) || t == timeline.NodeStarted
}
