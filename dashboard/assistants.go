package dashboard

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
)

// callsShown is how many calls a page shows.
const callsShown = 100

// assistantUI serves the pages of assistants: what each may see, and what it called.
type assistantUI struct {
	*frame
	assistants  host.Assistants
	connections host.Connections
}

func (u *assistantUI) routes() []web.Route {
	one := "/ui/assistants/:name"
	return []web.Route{
		page("/ui/assistants", u.listAssistants),
		action("/ui/assistants", u.addAssistant),
		page(one, u.showAssistant),
		part(one+"/calls", u.showCalls),
		action(one+"/revoke", button(slugOf, unshown(u.assistants.RevokeAssistant))),
		action(one+"/calls/:callId/approve", u.decide(true)),
		action(one+"/calls/:callId/deny", u.decide(false)),
	}
}

func (u *assistantUI) listAssistants(c *fiber.Ctx) error {
	ctx := web.Context(c)
	all, err := u.assistants.Assistants(ctx)
	if err != nil {
		return err
	}
	connections, err := u.connections.Connections(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(connections, byName)
	return u.show(c, "assistants", content{Title: "Assistants", Nav: "data", Body: struct {
		Assistants  []host.Assistant
		Connections []host.Connection
	}{all, connections}})
}

// addAssistant creates an assistant and shows its token once, with what to paste into a client.
func (u *assistantUI) addAssistant(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	q := host.NewAssistant{Name: f.text("name", 64),
		AssistantTerms: host.AssistantTerms{Run: f.on("run"), Ask: f.on("ask"), ExpiresAt: f.date("expiresAt")}}
	scope := narrowed(f)
	for _, id := range f.all("connections") {
		q.Connections = append(q.Connections, host.AssistantGrant{ConnectionID: id, Scope: scope})
	}
	switch {
	case len(q.Connections) == 0:
		f.fail("connections", "at least one")
	case scope != nil && len(q.Connections) > 1:
		f.fail("streams", "for one connection; make an assistant for each, or use sluice assistants add --grant")
	}
	if err := f.err(); err != nil {
		return err
	}
	made, err := u.assistants.AddAssistant(web.Context(c), q)
	if err != nil {
		return placed(err, map[string]string{"name": "name", "connections": "connections", "connections[0].scope": "streams",
			"expiresAt": "expiresAt"})
	}
	scheme := "http://"
	if web.Secure(c) {
		scheme = "https://"
	}
	return u.write(c, "assistants", "once", struct {
		host.Assistant
		URL string
	}{made, scheme + string(c.Request().Host()) + "/mcp"})
}

// narrowed returns the scope that a form selects, or nil for everything.
func narrowed(f *form) json.RawMessage {
	words := func(name string) []string {
		return strings.FieldsFunc(f.text(name, 16<<10), func(r rune) bool { return r == ',' || r == '\n' || r == ' ' })
	}
	fields, resources, times := words("fields"), words("resources"), map[string]string{}
	for _, bound := range []string{"since", "until"} {
		if v := f.text(bound, 64); v != "" {
			times[bound] = v
		}
	}
	var streams []map[string]any
	for _, name := range words("streams") {
		s := map[string]any{"name": name}
		if len(fields) > 0 {
			s["fields"] = fields
		}
		if len(resources) > 0 {
			s["resources"] = resources
		}
		if len(times) > 0 {
			s["time_range"] = times
		}
		streams = append(streams, s)
	}
	if streams == nil {
		if len(fields)+len(resources)+len(times) > 0 {
			f.fail("streams", "named, for these to be of")
		}
		return nil
	}
	scope, _ := json.Marshal(map[string]any{"streams": streams}) // it consists of texts
	return scope
}

type assistantPage struct {
	host.Assistant
	Calls []host.AssistantCall
}

// Scope returns a grant's scope as text, or "" for everything.
func (assistantPage) Scope(g host.AssistantGrant) string {
	if string(g.Scope) == "null" {
		return ""
	}
	return string(g.Scope)
}

func (u *assistantUI) load(c *fiber.Ctx) (p assistantPage, err error) {
	name, err := slugOf(c)
	if err != nil {
		return p, err
	}
	ctx := web.Context(c)
	if p.Assistant, err = u.assistants.Assistant(ctx, name); err != nil {
		return p, err
	}
	p.Calls, err = u.assistants.AssistantCalls(ctx, name, 0, callsShown)
	return p, err
}

func (u *assistantUI) showAssistant(c *fiber.Ctx) error {
	p, err := u.load(c)
	if err != nil {
		return err
	}
	return u.show(c, "assistant", content{Title: p.Name, Nav: "data", Body: p})
}

func (u *assistantUI) showCalls(c *fiber.Ctx) error {
	p, err := u.load(c)
	if err != nil {
		return err
	}
	return u.write(c, "assistant", "calls", p)
}

func (u *assistantUI) decide(yes bool) fiber.Handler {
	return func(c *fiber.Ctx) error {
		call, err := web.ID(c, "callId")
		if err != nil {
			return err
		}
		return button(slugOf, func(ctx context.Context, name string) error {
			return u.assistants.DecideCall(ctx, name, call, yes)
		})(c)
	}
}
