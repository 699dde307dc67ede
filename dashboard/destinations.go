package dashboard

import (
	"context"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// maxURL bounds the address of a destination, in bytes.
const maxURL = 4096

// destinationUI has the page of where data goes, and what can be done to each.
type destinationUI struct {
	*frame
	destinations host.Destinations
	stored       store.Records
}

// A destinationRow is a destination with what it was fed of late.
type destinationRow struct {
	host.Destination
	Daily uint64 // changes a day, over grownOver
}

// lookDestinations lists them with what each has of the changes of the last days.
func (u *destinationUI) lookDestinations(ctx context.Context) ([]destinationRow, error) {
	all, err := u.destinations.Destinations(ctx)
	if err != nil {
		return nil, err
	}
	streams := map[store.ConnectionID][]store.StreamStats{}
	out, looked, since := []destinationRow{}, 0, u.now().Add(-grownOver)
	for _, d := range all {
		row := destinationRow{Destination: d}
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
			for _, s := range streams[id] {
				if string(s.Stream) != t.Stream {
					continue
				}
				grown, err := changesSince(ctx, u.stored, id, s, since)
				if err != nil {
					return nil, err
				}
				row.Daily += grown - min(grown, t.Behind)
			}
		}
		row.Daily /= uint64(grownOver / (24 * time.Hour))
		out = append(out, row)
	}
	return out, nil
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
	return u.follow(c, "destinations", func(ctx context.Context) (any, error) { return u.lookDestinations(ctx) }, "destinations")
}

// addDestination begins to feed one. The address may hold credentials: it is wiped.
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
		DestinationTerms: host.DestinationTerms{Connections: words("connections"), Streams: words("streams"), Mode: f.text("mode", 32),
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

// destinationOf is the name in the path, of a request with a form.
func destinationOf(c *fiber.Ctx) (string, error) {
	name, err := web.Param(c, "name")
	if err != nil || !abi.IsSlug(name) {
		return "", web.NotFound()
	}
	_, err = formOf(c)
	return name, err
}

// act answers what became of a destination.
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
