package dashboard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

const (
	maxURL  = 4096 // bytes of a destination's address
	fedDays = 14   // days for which the page shows a destination's rows
)

// destinationUI serves the page of destinations and their actions.
type destinationUI struct {
	*frame
	destinations host.Destinations
	stored       store.Records
}

// A destinationRow is a destination with its recent rows.
type destinationRow struct {
	host.Destination
	Days  plot       // rows stored, by the day on which they were collected
	Waits *time.Time // age of the oldest missing row; nil: none is missing
}

// Made returns the number of its tables.
func (r destinationRow) Made() (n int) {
	for _, t := range r.Tables {
		if t.Table != "" {
			n++
		}
	}
	return n
}

// Blocked returns the streams that cannot be written, if there are several; of one Error says why.
func (r destinationRow) Blocked() (out []host.DestinationStream) {
	for _, t := range r.Tables {
		if t.Error != "" {
			out = append(out, t)
		}
	}
	if len(out) == 1 {
		return nil
	}
	return out
}

// lookDestinations returns the destinations, each with what it has of the last days' changes.
func (u *destinationUI) lookDestinations(ctx context.Context) ([]destinationRow, error) {
	all, err := u.destinations.Destinations(ctx)
	if err != nil {
		return nil, err
	}
	streams := map[store.ConnectionID][]store.StreamStats{}
	out, looked := []destinationRow{}, 0
	for _, d := range all {
		row, days := destinationRow{Destination: d}, make([]uint64, fedDays)
		for _, t := range d.Tables {
			id := store.ConnectionID(t.ConnectionID)
			if looked++; looked > maxStreams {
				break
			}
			if _, known := streams[id]; !known {
				if streams[id], err = u.stored.Streams(ctx, id); err != nil {
					return nil, err
				}
			}
			i := slices.IndexFunc(streams[id], func(s store.StreamStats) bool { return string(s.Stream) == t.Stream })
			if i < 0 {
				continue
			}
			if err := u.lookTable(ctx, &row, days, t, streams[id][i]); err != nil {
				return nil, err
			}
		}
		row.Days = daysOf(u.firstDay(), days)
		out = append(out, row)
	}
	return out, nil
}

// firstDay returns the first day shown; the last is today, in UTC.
func (u *destinationUI) firstDay() time.Time {
	return u.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-fedDays)
}

// lookTable adds one table to a destination's row.
func (u *destinationUI) lookTable(ctx context.Context, row *destinationRow, days []uint64, t host.DestinationStream,
	s store.StreamStats) error {
	id := store.ConnectionID(t.ConnectionID)
	has := s.LastVersion - min(s.LastVersion, t.Behind)
	got, err := changesByDay(ctx, u.stored, id, s, u.firstDay(), len(days), has)
	if err != nil {
		return err
	}
	for i, n := range got {
		days[i] += n
	}
	if t.Behind == 0 {
		return nil
	}
	p, err := u.stored.Records(ctx,
		store.RecordQuery{Connection: id, Stream: s.Stream, After: has, Deleted: true, Limit: 1})
	if err == nil && len(p.Records) > 0 && (row.Waits == nil || p.Records[0].IngestedAt.Before(*row.Waits)) {
		row.Waits = &p.Records[0].IngestedAt
	}
	return err
}

// daysOf draws a number per day.
func daysOf(first time.Time, days []uint64) plot {
	of := make([]amount, len(days))
	for i, n := range days {
		of[i] = amount{Value: float64(n), Tone: "accent", Text: first.AddDate(0, 0, i).Format(time.DateOnly) + ": " +
			short(float64(n)) + " rows"}
	}
	p := barsOf("Rows by the day they came", plotWidth/2, plotHeight/3, of)
	p.First, p.Last = first.Format(time.DateOnly), "today"
	return p
}

func (u *destinationUI) routes() []web.Route {
	one := "/ui/data/destinations/:name"
	return []web.Route{
		page("/ui/data/destinations", u.listDestinations),
		live("/ui/live/destinations", u.destinationsLive),
		action("/ui/data/destinations", u.addDestination),
		action(one+"/sync", u.syncDestination),
		action(one+"/pause", u.pauseDestination),
		action(one+"/resume", u.resumeDestination),
		action(one+"/rebuild", u.rebuildDestination),
		action(one+"/remove", u.removeDestination),
	}
}

func (u *destinationUI) listDestinations(c *fiber.Ctx) error {
	all, err := u.lookDestinations(web.Context(c))
	if err != nil {
		return err
	}
	return u.show(c, "destinations", content{Title: "Destinations", Nav: "data", Live: "/ui/live/destinations", Body: all})
}

func (u *destinationUI) destinationsLive(c *fiber.Ctx) error {
	return u.follow(c, "destinations", func(ctx context.Context) (any, error) { return u.lookDestinations(ctx) },
		"destinations")
}

// addDestination adds a destination. The address may contain credentials, so the body is wiped.
func (u *destinationUI) addDestination(c *fiber.Ctx) error {
	defer web.Wipe(c)
	f, err := formOf(c)
	if err != nil {
		return err
	}
	words := func(name string) []string {
		return strings.FieldsFunc(f.text(name, 16<<10), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	}
	q := host.NewDestination{Name: f.text("name", 64), URL: f.text("url", maxURL), TakeOver: f.on("takeOver"),
		DestinationTerms: host.DestinationTerms{Connections: words("connections"), Streams: words("streams"),
			Mode:    f.text("mode", 32),
			Flatten: f.on("flatten"), Files: f.on("files"), Cron: f.text("cron", 256)}}
	if q.Name == "" {
		f.fail("name", "filled in")
	}
	if q.URL == "" {
		f.fail("url", "filled in, such as sqlite:/home/me/sluice.db")
	}
	if err := f.err(); err != nil {
		return err
	}
	_, err = u.destinations.AddDestination(web.Context(c), q)
	return reload(c, err)
}

// destinationOf returns the destination name in the path of a form's request.
func destinationOf(c *fiber.Ctx) (string, error) {
	name, err := web.Param(c, "name")
	if err != nil || !abi.IsSlug(name) {
		return "", web.NotFound()
	}
	_, err = formOf(c)
	return name, err
}

// act runs an action on a destination and answers with its result.
func act(c *fiber.Ctx, do func(ctx context.Context, name string) (host.Destination, error)) error {
	name, err := destinationOf(c)
	if err != nil {
		return err
	}
	d, err := do(web.Context(c), name)
	switch {
	case err != nil:
		return err
	case d.Error != "":
		return web.NewProblem(0, "destination_unavailable", "%s", d.Error)
	}
	return reload(c, nil)
}

func (u *destinationUI) syncDestination(c *fiber.Ctx) error {
	return act(c, u.destinations.SyncDestination)
}

func (u *destinationUI) pauseDestination(c *fiber.Ctx) error { return u.setPaused(c, true) }

func (u *destinationUI) resumeDestination(c *fiber.Ctx) error { return u.setPaused(c, false) }

func (u *destinationUI) setPaused(c *fiber.Ctx, paused bool) error {
	name, err := destinationOf(c)
	if err != nil {
		return err
	}
	_, err = u.destinations.PauseDestination(web.Context(c), name, paused)
	return reload(c, err)
}

func (u *destinationUI) rebuildDestination(c *fiber.Ctx) error {
	return act(c, func(ctx context.Context, name string) (host.Destination, error) {
		return u.destinations.RebuildDestination(ctx, name, store.ConnectionID(""), store.Stream(""))
	})
}

func (u *destinationUI) removeDestination(c *fiber.Ctx) error {
	name, err := destinationOf(c)
	if err != nil {
		return err
	}
	return reload(c, u.destinations.RemoveDestination(web.Context(c), name))
}
