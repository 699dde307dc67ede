package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// A badge counts what waits for the owner.
type badge struct {
	Count  int
	Newest string // id of the newest request, so that it is announced once
}

// An ask is an open request with what is needed to show it.
type ask struct {
	timeline.View
	Connection string // display name, or the id
	Raw        *host.RawAssistance
	Links      []link
	Draft      string // text that the owner may edit, for View.Edited
	Untold     string // why the connector's own words are not known here, as a sentence; "" for no reason
}

// waiting finds the requests that wait for the owner.
type waiting struct {
	leases    store.Leases
	streams   *stream.Hub
	questions host.Questions
}

// items returns the requests of active runs that need the owner, oldest first.
func (u waiting) items(ctx context.Context) ([]timeline.Item, error) {
	leases, err := u.leases.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var items []timeline.Item
	for _, l := range leases {
		err := u.streams.Fold(ctx, l.RunID, func(_ store.Run, f *timeline.Fold) {
			for _, i := range f.Assistance(true) {
				if wanted(timeline.ViewOf(i).State) {
					items = append(items, i)
				}
			}
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	slices.SortStableFunc(items, func(a, b timeline.Item) int {
		return strings.Compare(a.CreatedAt+a.AssistanceID, b.CreatedAt+b.AssistanceID)
	})
	return items, nil
}

// wanted reports whether the owner has to act on a request, here or elsewhere.
func wanted(s timeline.State) bool {
	switch s {
	case timeline.StateA, timeline.StateB, timeline.StateBDecision, timeline.StateC,
		timeline.StateCNoSurface, timeline.StateE:
		return true
	}
	return false
}

func (u waiting) badge(ctx context.Context) (badge, error) {
	items, err := u.items(ctx)
	b := badge{Count: len(items)}
	if len(items) > 0 {
		b.Newest = items[len(items)-1].AssistanceID
	}
	return b, err
}

// tellWithin bounds the wait for another host that has a question.
const tellWithin = 3 * time.Second

// asked prepares a request for display. The connector's own words and the targets of links are only
// known while it is open.
func (u waiting) asked(ctx context.Context, i timeline.Item, connection string) (ask, error) {
	a := ask{View: timeline.ViewOf(i), Connection: connection}
	if i.Status != timeline.ItemOpen {
		return a, nil
	}
	asking, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	raw, err := u.questions.RawAssistance(asking, i.RunID, i.RequestID)
	switch p, known := web.ProblemOf(err); {
	case err == nil:
		a.Raw = &raw
		a.Links = linksOf(raw.Attachments)
		if !a.Controls.Links { // without links to open, the rest is still shown
			a.Links = slices.DeleteFunc(a.Links, func(l link) bool { return !l.Only })
		}
		if a.Edited {
			a.Draft = abi.CleanLines(abi.Draft(raw.Schema))
		}
	case known && p.Code == "unavailable" && ctx.Err() == nil: // the host that has the run does not tell
		if a.Untold = p.Message; asking.Err() != nil {
			a.Untold = "the host that has the run does not answer at the moment"
		}
	case !known || p.Code != "not_found" && p.Code != "no_pending_interaction":
		return a, err
	}
	return a, nil
}

// inboxBody is what the inbox shows.
type inboxBody struct {
	Asks      []ask
	Attention []host.Connection // connections whose failures need their owner
}

// inboxUI serves the page of what waits for the owner.
type inboxUI struct {
	*frame
	connections host.Connections
}

func (u *inboxUI) routes() []web.Route {
	return append(renewed(u.frame, "/ui/inbox", content{Title: "Needs me", Nav: "inbox", Live: "/ui/live/inbox"},
		u.lookInbox, "asks"), live("/ui/live/badge", u.badgeLive))
}

func (u *inboxUI) lookInbox(ctx context.Context) (inboxBody, error) {
	var b inboxBody
	connections, err := u.connections.Connections(ctx)
	if err != nil {
		return b, err
	}
	names := map[string]string{}
	for _, x := range connections {
		names[x.ConnectionID] = x.DisplayName
		if x.NeedsAttention && x.ActiveRunID == "" {
			b.Attention = append(b.Attention, x)
		}
	}
	items, err := u.items(ctx)
	if err != nil {
		return b, err
	}
	for _, i := range items {
		a, err := u.asked(ctx, i, names[string(i.ConnectionID)])
		if err != nil {
			return b, err
		}
		b.Asks = append(b.Asks, a)
	}
	return b, nil
}
