package api

import (
	"cmp"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// keyAPI has the routes of API keys.
type keyAPI struct {
	keys  *access.Keys
	audit host.AuditLog
}

func (a *keyAPI) routes() []route {
	return documented("api.md#api-keys-audit-feed", []route{
		{Route: web.Route{Method: "POST", Path: "/v1/api-keys", Scope: access.KeysManage, Keyed: true,
			Handle: a.createKey},
			summary: "Make an API key; it is shown once", body: access.NewKey{}, answer: access.MadeKey{}, status: 201,
			codes: []string{"forbidden"}},
		{Route: web.Route{Method: "GET", Path: "/v1/api-keys", Scope: access.KeysManage, Handle: a.listKeys},
			summary: "List API keys", query: paging, answer: web.List[access.Key]{}},
		{Route: web.Route{Method: "DELETE", Path: "/v1/api-keys/:keyId", Scope: access.KeysManage, Keyed: true,
			Handle: a.revokeKey},
			summary: "Revoke an API key at once"},
	})
}

func (a *keyAPI) createKey(c *fiber.Ctx) error {
	var q access.NewKey
	if err := web.Body(c, &q); err != nil {
		return err
	}
	slot := web.SlotOf(c)
	slot.Omit("key")
	var failed error
	key, secret, err := a.keys.Create(web.Context(c), web.Principal(c), q,
		func(k access.Key, secret string) []store.Write {
			answer, err := web.Encode(access.MadeKey{Key: k, Secret: secret})
			failed = err
			return slot.Writes(201, answer, "/v1/api-keys/"+k.KeyID)
		})
	if err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	if err := a.audit.Audit(web.Context(c), "key.created", key.KeyID, "done", nil); err != nil {
		return err
	}
	return web.Created(c, "/v1/api-keys/"+key.KeyID, access.MadeKey{Key: key, Secret: secret})
}

func (a *keyAPI) listKeys(c *fiber.Ctx) error {
	page, err := web.PageOf(c, 0, 0)
	if err != nil {
		return err
	}
	p := web.Principal(c)
	var out []access.Key
	for after := page.After; ; {
		keys, err := a.keys.List(web.Context(c), after, keysAtOnce)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if after = k.KeyID; !p.Manages(k) {
				continue
			}
			if len(out) == page.Limit {
				return web.Listed(c, out, out[page.Limit-1].KeyID)
			}
			out = append(out, k)
		}
		if len(keys) < keysAtOnce {
			return web.Listed(c, out, "")
		}
	}
}

// keysAtOnce is how many keys are read at a time.
const keysAtOnce = 500

func (a *keyAPI) revokeKey(c *fiber.Ctx) error {
	id, err := web.ID(c, "keyId")
	if err != nil {
		return err
	}
	if k, err := a.keys.Key(web.Context(c), id); err != nil || !web.Principal(c).Manages(k) {
		return cmp.Or(err, error(web.NotFound()))
	}
	if err := a.keys.Revoke(web.Context(c), id); err != nil {
		return err
	}
	return web.Done(c, a.audit.Audit(web.Context(c), "key.revoked", id, "done", nil))
}
