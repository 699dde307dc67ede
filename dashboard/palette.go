package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// Results that the palette shows of each kind, and how long it waits for records.
const (
	paletteLines = 6
	paletteRuns  = 100 // runs searched
	paletteWait  = 3 * time.Second
)

// A shortcut is a page that the palette can open.
type shortcut struct{ Name, Path, also string }

// places lists the pages that need no parameter.
var places = []shortcut{
	{"Overview", "/ui/", "home start"}, {"Needs me", "/ui/inbox", "inbox questions"}, {"Runs", "/ui/runs", "history"},
	{"Data", "/ui/data", "streams"}, {"Records", "/ui/records", "streams"}, {"SQL", "/ui/data/sql", "query"},
	{"Destinations", "/ui/data/destinations", "export sync"},
	{"Connectors", "/ui/connectors", "install modules new connection add connect"},
	{"Schedules", "/ui/schedules", "cron times"}, {"Keys", "/ui/keys", "api tokens"}, {"Audit", "/ui/audit", "log"},
	{"Settings", "/ui/settings", "webhooks backups host"},
}

// A foundRun is a run that the palette can open.
type foundRun struct {
	store.Run
	Status string
}

// findings is what the palette found.
type findings struct {
	Words       string
	Places      []shortcut
	Connections []host.Connection
	Runs        []foundRun
	Hits        []host.Hit
	More        bool
	Late        bool // the records are not searched yet
}

// Count returns the number of lines, for screen readers.
func (f findings) Count() int {
	return len(f.Places) + len(f.Connections) + len(f.Runs) + len(f.Hits)
}

// paletteUI serves what Ctrl-K finds.
type paletteUI struct {
	*frame
	connections host.Connections
	records     host.Searcher
	rows        store.Runs
}

func (u *paletteUI) routes() []web.Route {
	return []web.Route{part("/ui/find", u.find)}
}

func (u *paletteUI) find(c *fiber.Ctx) error {
	p := web.QueryOf(c)
	f := findings{Words: strings.TrimSpace(p.Text("q", 1000))}
	if err := p.Err(); err != nil {
		return err
	}
	ctx := web.Context(c)
	for _, x := range places {
		if has(f.Words, x.Name+" "+x.also) {
			f.Places = append(f.Places, x)
		}
	}
	if err := u.findConnections(ctx, &f); err != nil {
		return err
	}
	if err := u.findRuns(ctx, &f); err != nil {
		return err
	}
	if err := u.findRecords(ctx, &f); err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return u.write(c, "overview", "palette-found", f)
}

// has reports whether a text contains all words, ignoring case.
func has(words, text string) bool {
	text = strings.ToLower(text)
	for _, w := range strings.Fields(strings.ToLower(words)) {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func (u *paletteUI) findConnections(ctx context.Context, f *findings) error {
	if f.Words == "" {
		return nil
	}
	all, err := u.connections.Connections(ctx)
	if err != nil {
		return err
	}
	all = slices.Clone(all)
	slices.SortFunc(all, byName)
	for _, x := range all {
		if has(f.Words, x.ConnectionID+" "+x.DisplayName+" "+x.ConnectorName) && len(f.Connections) < paletteLines {
			f.Connections = append(f.Connections, x)
		}
	}
	return nil
}

func (u *paletteUI) findRuns(ctx context.Context, f *findings) error {
	rows, err := u.rows.Runs(ctx, "", "", paletteRuns)
	if err != nil {
		return err
	}
	for _, r := range rows {
		status := string(timeline.RowStatus(r))
		if has(f.Words, string(r.ID)+" "+string(r.ConnectionID)+" "+status) && len(f.Runs) < paletteLines {
			f.Runs = append(f.Runs, foundRun{r, status})
		}
	}
	return nil
}

// findRecords searches records for the words, the last of which may be incomplete.
func (u *paletteUI) findRecords(ctx context.Context, f *findings) error {
	if f.Words == "" {
		return nil
	}
	words := f.Words
	if last, _ := utf8.DecodeLastRuneInString(words); unicode.IsLetter(last) && strings.Count(words, `"`)%2 == 0 {
		words += "*"
	}
	ctx, cancel := context.WithTimeout(ctx, paletteWait)
	defer cancel()
	r, err := u.records.Search(ctx, host.SearchQuery{Words: words, Limit: paletteLines})
	var refusal *host.Refusal
	switch {
	case ctx.Err() != nil:
		f.Late = true
		return nil
	case errors.As(err, &refusal) && refusal.Code == "validation_error": // no searchable word yet
		return nil
	case errors.As(err, &refusal) && refusal.Code == "search_limit":
		f.Late = true
		return nil
	}
	f.Hits, f.More = r.Hits, r.More
	return err
}
