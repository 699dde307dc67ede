package dashboard

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// pace is the shortest interval between updates of an open page. rest is the longest, since ages
// and rates change by themselves.
const (
	pace = 500 * time.Millisecond
	rest = 30 * time.Second
)

// A drawing is an open page as it was last sent.
type drawing struct {
	u    *frame
	page string
	sent map[string][]byte // by part
	last time.Time
}

// early returns how long to wait before the next update.
func (d *drawing) early(out *stream.Out) time.Duration {
	if wait := pace - time.Since(d.last); wait > 0 && !out.Closing() {
		return wait
	}
	d.last = time.Now()
	return 0
}

// send renders the badge and parts of the page. Each that has changed is sent as an event of its
// name.
func (d *drawing) send(ctx context.Context, out *stream.Out, body any, parts ...string) error {
	asks, err := d.u.badge(ctx)
	if err != nil {
		return err
	}
	for _, part := range append([]string{"badge"}, parts...) {
		data := body
		if part == "badge" {
			data = asks
		}
		text, err := d.u.render(d.page, part, data)
		if err != nil {
			return err
		}
		if before, ok := d.sent[part]; ok && bytes.Equal(before, text) {
			continue
		}
		d.sent[part] = text
		if err := out.Event("", part, text); err != nil {
			return err
		}
	}
	return nil
}

// follow streams parts of a page, rendered from what look returns. look is called after commits of
// any run.
func (u *frame) follow(c *fiber.Ctx, page string, look func(context.Context) (any, error), parts ...string) error {
	d := &drawing{u: u, page: page, sent: map[string][]byte{}}
	return u.serve(c, "", func(ctx context.Context, out *stream.Out) (time.Duration, error) {
		if wait := d.early(out); wait > 0 {
			return wait, nil
		}
		body, err := look(ctx)
		if err != nil {
			return 0, err
		}
		return rest, d.send(ctx, out, body, parts...)
	})
}

// renewed returns the route of a page and that of the stream that renews parts of it, both of what look returns. p.Live
// ends with the name of the template.
func renewed[T any](u *frame, path string, p content, look func(context.Context) (T, error),
	parts ...string) []web.Route {
	name := strings.TrimPrefix(p.Live, "/ui/live/")
	return []web.Route{
		page(path, func(c *fiber.Ctx) error {
			p := p
			var err error
			if p.Body, err = look(web.Context(c)); err != nil {
				return err
			}
			return u.show(c, name, p)
		}),
		live(p.Live, func(c *fiber.Ctx) error {
			return u.follow(c, name, func(ctx context.Context) (any, error) { return look(ctx) }, parts...)
		}),
	}
}

// serve opens a stream and answers with it.
func (u *frame) serve(c *fiber.Ctx, run store.RunID, src stream.Source) error {
	p := web.Principal(c)
	s, err := u.streams.Open(stream.Client{Key: p.ID, Check: web.Recheck(c)}, run, src)
	var full *stream.LimitError
	switch {
	case errors.As(err, &full):
		return web.NewProblem(0, "rate_limited", "Too many pages are open at once. Close some.")
	case errors.Is(err, stream.ErrClosed):
		return web.NewProblem(0, "unavailable", "The host is stopping.")
	case err != nil:
		return err
	}
	err = web.Follow(c, stream.ContentType, s.Serve)
	if err != nil {
		s.Close()
	}
	return err
}

// badgeLive streams the badge, for pages without other live parts.
func (u *frame) badgeLive(c *fiber.Ctx) error {
	return u.follow(c, "settings", func(context.Context) (any, error) { return nil, nil })
}
