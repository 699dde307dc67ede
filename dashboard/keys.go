package dashboard

import (
	"errors"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// keysPage bounds the keys listed.
const keysPage = 500

// keyUI serves the page of API keys.
type keyUI struct {
	*frame
	keys        *access.Keys // set by Register
	connections host.Connections
	audit       host.AuditLog
}

func (u *keyUI) routes() []web.Route {
	return []web.Route{
		page("/ui/keys", u.listKeys),
		action("/ui/keys", u.createKey),
		action("/ui/keys/:keyId/revoke", u.revokeKey),
	}
}

func (u *keyUI) listKeys(c *fiber.Ctx) error {
	ctx := web.Context(c)
	list, err := u.keys.List(ctx, "", keysPage)
	if err != nil {
		return err
	}
	slices.Reverse(list)
	connections, err := u.connections.Connections(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(connections, byName)
	body := struct {
		Keys        []access.Key
		Scopes      []scopeChoice
		Connections []host.Connection
	}{list, scopeChoices(), connections}
	return u.show(c, "keys", content{Title: "Keys", Nav: "keys", Body: body})
}

// A scopeChoice is a scope that a key can have, with what it permits.
type scopeChoice struct {
	Scope access.Scope
	May   string
}

func scopeChoices() []scopeChoice {
	all := access.All()
	choices := make([]scopeChoice, len(all))
	for i, s := range all {
		choices[i] = scopeChoice{s, scopeWords[s]}
	}
	return choices
}

var scopeWords = map[access.Scope]string{
	access.ManifestRead:      "see which connectors there are and what they ask for",
	access.RunsCreate:        "start runs",
	access.RunsRead:          "follow runs, with everything that happens in them",
	access.RunsCancel:        "cancel, pause and resume runs",
	access.ArtifactsRead:     "fetch the files that runs leave, such as browser traces",
	access.WebhooksManage:    "have events sent to other places",
	access.ApprovalsRespond:  "answer what runs ask their owner",
	access.ConnectorsManage:  "install and remove connectors",
	access.ConnectionsRead:   "see connections, with their settings and schedules",
	access.ConnectionsManage: "make, change and delete connections",
	access.GrantsApprove:     "decide what connectors may do, and take it back",
	access.SecretsWrite:      "set secrets, which nobody can read back",
	access.SchedulesManage:   "make, change and pause schedules",
	access.RecordsRead:       "read and export what was collected",
	access.StateRead:         "see how far each stream has come",
	access.StateManage:       "reset that, so that a stream is collected anew",
	access.SurfacesView:      "watch the browsers of runs",
	access.SurfacesControl:   "use the browsers of runs",
	access.KeysManage:        "make and revoke keys with at most its own scopes",
	access.AuditRead:         "read the audit log",
	access.MetricsRead:       "read metrics",
}

// createKey creates a key and shows it once.
func (u *keyUI) createKey(c *fiber.Ctx) error {
	f, err := formOf(c)
	if err != nil {
		return err
	}
	n := access.NewKey{Name: f.text("name", 80), Mode: access.Live, ExpiresAt: f.date("expiresAt")}
	if f.on("test") {
		n.Mode = access.Test
	}
	for _, s := range f.all("scopes") {
		n.Scopes = append(n.Scopes, access.Scope(s))
	}
	for _, id := range f.all("connectionIds") {
		n.ConnectionIDs = append(n.ConnectionIDs, store.ConnectionID(id))
	}
	if len(n.Scopes) == 0 {
		f.fail("scopes", "at least one")
	}
	if err := f.err(); err != nil {
		return err
	}
	ctx := web.Context(c)
	key, secret, err := u.keys.Create(ctx, web.Principal(c), n, nil)
	if wrong := (*access.FieldError)(nil); errors.As(err, &wrong) {
		return web.Invalid(web.Field{Path: wrong.Path, Rule: wrong.Rule})
	}
	if err != nil {
		return err
	}
	if err := u.audit.Audit(ctx, "key.created", key.KeyID, "done", nil); err != nil {
		return err
	}
	return u.write(c, "keys", "once", struct {
		access.Key
		Secret string
	}{key, secret})
}

func (u *keyUI) revokeKey(c *fiber.Ctx) error {
	id, err := web.ID(c, "keyId")
	if err != nil {
		return err
	}
	if _, err := formOf(c); err != nil {
		return err
	}
	ctx := web.Context(c)
	if err := u.keys.Revoke(ctx, id); err != nil {
		return err
	}
	return reload(c, u.audit.Audit(ctx, "key.revoked", id, "done", nil))
}
