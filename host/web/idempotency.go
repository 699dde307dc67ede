package web

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/access"
)

const (
	headerIdempotency = "Idempotency-Key"
	headerReplay      = "openwop-Idempotent-Replay"
)

// IdempotencyKey returns the key of a request whose route is not Keyed because its answer is stored
// elsewhere or not at all, or "" if there is none.
func IdempotencyKey(c *fiber.Ctx) (string, error) {
	key := c.Request().Header.Peek(headerIdempotency)
	if key != nil && !access.ValidKey(string(key)) {
		return "", access.ErrKeySyntax
	}
	return string(key), nil
}

// idempotent carries out a request with an Idempotency-Key, or repeats its earlier answer.
func (a *App) idempotent(c *fiber.Ctx, r *request, handle fiber.Handler) error {
	key := c.Request().Header.Peek(headerIdempotency)
	if key == nil {
		return handle(c)
	}
	body, err := r.read(c)
	if err != nil {
		return err
	}
	ctx := Context(c)
	reply, slot, err := a.o.Access.Replies.Begin(ctx, access.Request{
		Space: r.partition(), Method: r.method, Path: r.path, Key: string(key), By: r.principal.ID,
		Query: c.Context().QueryArgs().QueryString(), Content: body,
	})
	if err != nil {
		return err
	}
	if reply != nil {
		return replay(c, reply)
	}
	defer slot.Abandon()
	r.slot = slot
	if err := handle(c); err != nil {
		if kept, no := slot.Kept(ctx); no == nil && kept != nil { // another host carried it out meanwhile
			return replay(c, kept)
		}
		a.fail(c, r, err)
	}
	c.Set(headerReplay, "false")
	res := c.Response()
	after, _ := strconv.Atoi(string(res.Header.Peek(fiber.HeaderRetryAfter)))
	location := string(res.Header.Peek(fiber.HeaderLocation))
	if err := slot.Finish(ctx, res.StatusCode(), res.Body(), location, time.Duration(after)*time.Second); err != nil {
		a.o.Log.Warn("answer could not be kept", slog.String("request", r.id), slog.String("error", err.Error()))
	}
	return nil
}

func replay(c *fiber.Ctx, reply *access.Reply) error {
	c.Set(headerReplay, "true")
	if reply.Location != "" {
		c.Set(fiber.HeaderLocation, strings.Clone(reply.Location))
	}
	if len(reply.Body) == 0 {
		c.Status(reply.Status)
		return nil
	}
	return Bytes(c, reply.Status, reply.Body)
}
