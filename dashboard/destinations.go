package dashboard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

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
	return append(renewed(u.frame, "/ui/data/destinations",
		content{Title: "Destinations", Nav: "data", Live: "/ui/live/destinations"}, u.lookDestinations, "destinations"),
		action("/ui/data/destinations", u.addDestination),
		action(one+"/sync", button(slugOf, u.sync)),
		action(one+"/pause", button(slugOf, u.setPaused(true))),
		action(one+"/resume", button(slugOf, u.setPaused(false))),
		action(one+"/rebuild", button(slugOf, u.rebuild)),
		action(one+"/remove", button(slugOf, u.destinations.RemoveDestination)),
	)
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

// sync answers with what went wrong, for which the service has no error.
func (u *destinationUI) sync(ctx context.Context, name string) error {
	return failure(u.destinations.SyncDestination(ctx, name))
}

func (u *destinationUI) rebuild(ctx context.Context, name string) error {
	return failure(u.destinations.RebuildDestination(ctx, name, "", ""))
}

func failure(d host.Destination, err error) error {
	if err == nil && d.Error != "" {
		err = web.NewProblem(0, "destination_unavailable", "%s", d.Error)
	}
	return err
}

func (u *destinationUI) setPaused(paused bool) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		_, err := u.destinations.PauseDestination(ctx, name, paused)
		return err
	}
}
