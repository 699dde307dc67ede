package dashboard

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// The steps from a connector to its first run. Each is a page of its own that shows what is stored,
// so going back and reloading are harmless.
const (
	stepChoose = iota
	stepReview
	stepAllow
	stepStart
	stepRun
)

// A step is one of these steps. Path is "" for a step that cannot be reached yet.
type step struct {
	Name, Path    string
	Current, Done bool
}

// stepsAt returns the steps with the given one as current. connection is "" while there is none.
func stepsAt(now int, connector, connection string) []step {
	one := "/ui/connections/" + connection
	all := []step{{Name: "Choose", Path: "/ui/connectors"},
		{Name: "Review", Path: "/ui/connectors/" + connector + "/connect"},
		{Name: "Allow", Path: one + "/grant"}, {Name: "Start", Path: one + "/start"}, {Name: "First run"}}
	for i := range all {
		all[i].Current, all[i].Done = i == now, i < now
		if i >= now {
			all[i].Path = ""
		}
	}
	return all
}

// stepsOf returns the steps of a connection that has never run, or none for any other.
func stepsOf(now int, c host.Connection) []step {
	if c.LastRun != nil {
		return nil
	}
	return stepsAt(now, c.ConnectorName, c.ConnectionID)
}

// navOf returns the navigation entry for a page of a connection.
func navOf(steps []step) string {
	if len(steps) > 0 {
		return "connectors"
	}
	return "overview"
}

// nextStep returns the page on which the owner can provide what a connection lacks.
func nextStep(c host.Connection) string {
	at := "/ui/connections/" + c.ConnectionID
	for _, code := range c.NotReady {
		switch {
		case strings.HasPrefix(code, "grant_"), code == "binding_not_approved":
			return at + "/grant"
		case code == "connection_disabled", strings.HasPrefix(code, "setting_"):
			return at + "#h-settings"
		case strings.HasPrefix(code, "connector_"):
			return "/ui/connectors"
		}
	}
	return at + "/start"
}

// asks is what a connector asks for: the streams that it collects, and the rest as sentences.
type asks struct {
	Collects string
	Others   []string
}

// asksOf separates streams from the other sentences.
func asksOf(words []string) asks {
	var a asks
	var streams []string
	for _, w := range words {
		if stream, ok := strings.CutPrefix(w, "collect "); ok {
			streams = append(streams, stream)
		} else {
			a.Others = append(a.Others, sentence(w))
		}
	}
	a.Collects = strings.Join(streams, ", ")
	return a
}

// An example is a connector whose source is part of Sluice's.
type example struct {
	Name, Title string // Name is its directory in examples
	Words       []string
}

// examples lists the examples that collect something useful. A test compares them with their
// manifests.
var examples = []example{
	{"git", "Git repository",
		[]string{"collect commits", "collect files", "collect refs", "collect tags", "read the directory repo"}},
	{"ical", "Calendar files",
		[]string{"collect calendars", "collect events", "collect alarms", "read the directory calendars"}},
	{"feed", "Web feeds", []string{"collect feeds", "collect entries", "reach servers that you name, and no others"}},
	{"caldav", "Calendars and contacts",
		[]string{"collect calendars", "collect events", "collect todos", "collect address_books", "collect contacts",
			"reach servers that you name, and no others", "use the secret password",
			"have password sent to the server that you name (header:Authorization)"}},
	{"github", "GitHub", []string{"collect repositories", "collect stars", "collect issues", "collect pull_requests",
		"collect comments", "collect review_comments", "collect releases",
		"reach api.github.com", "use the secret token", "have token sent to https://api.github.com (header:Authorization)"}},
	{"ask", "Ask me anything", []string{"collect answers"}},
}

// gallery lists the connectors to choose from.
type gallery struct {
	Steps    []step
	All      []host.Connector
	Examples []example // not installed ones
}

func galleryOf(all []host.Connector) gallery {
	g := gallery{Steps: stepsAt(stepChoose, "", ""), All: all}
	for _, x := range examples {
		if !slices.ContainsFunc(all, func(c host.Connector) bool { return c.Name == x.Name }) {
			g.Examples = append(g.Examples, x)
		}
	}
	return g
}

// review shows what a connector asks for, and what a new connection of it needs.
func (u *connectorUI) review(c *fiber.Ctx) error {
	name, err := web.ID(c, "connectorName")
	if err != nil {
		return err
	}
	x, err := u.connectors.Connector(web.Context(c), name)
	if err != nil {
		return err
	}
	all, err := u.connections.Connections(web.Context(c))
	if err != nil {
		return err
	}
	return u.show(c, "connect", content{Title: "Connect " + x.DisplayName, Nav: "connectors", Body: struct {
		host.Connector
		Steps    []step
		Settings []setting
		Begun    []host.Connection // its connections that have never run
	}{x, stepsAt(stepReview, x.Name, ""), settingsOf(x.Manifest, nil),
		slices.DeleteFunc(slices.Clone(all), func(o host.Connection) bool {
			return o.ConnectorName != x.Name || o.LastRun != nil || o.ActiveRunID != ""
		})}})
}

// start shows the page on which a connection gets its secrets and its first run.
func (u *connectionUI) start(c *fiber.Ctx) error {
	id, err := connectionOf(c)
	if err != nil {
		return err
	}
	ctx := web.Context(c)
	conn, err := u.connections.Connection(ctx, id)
	if err != nil {
		return err
	}
	asked, err := u.grants.Requested(ctx, id)
	if err != nil {
		return err
	}
	steps := stepsOf(stepStart, conn)
	return u.show(c, "start", content{Title: "Start " + nameOf(conn), Nav: navOf(steps), Body: struct {
		host.Connection
		Requested host.Requested
		Steps     []step
		Next      string
	}{conn, asked, steps, nextStep(conn)}})
}

// firstRun returns the steps to show above a connection's only run.
func (u *runUI) firstRun(c *fiber.Ctx, r store.Run) ([]step, error) {
	rows, err := u.rows.Runs(web.Context(c), r.ConnectionID, "", 2)
	if err != nil || len(rows) != 1 || rows[0].ID != r.ID {
		return nil, err
	}
	conn, err := u.connections.Connection(web.Context(c), r.ConnectionID)
	if err != nil {
		return nil, nil // deleted meanwhile
	}
	return stepsAt(stepRun, conn.ConnectorName, conn.ConnectionID), nil
}
