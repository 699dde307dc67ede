package dashboard

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// pace is how often a page that stays open is drawn again at most, and rest how
// often when nothing happens: ages and rates change by themselves.
const (
	pace = 500 * time.Millisecond
	rest = 30 * time.Second
)

// A region is a part of a page that is sent again when it looks different.
type region struct {
	name string // of the event, and of the sse-swap that takes it
	part string // template
	data any
}

// follow streams a page to itself: what look returns is rendered, and what
// changed is sent. look is called after commits of the run, or of any with "".
func (u *frame) follow(c *fiber.Ctx, run store.RunID, pageName string, look func(ctx context.Context) ([]region, error)) error {
	sent := map[string][]byte{}
	var last time.Time
	return u.serve(c, run, func(ctx context.Context, out *stream.Out) (time.Duration, error) {
		if wait := pace - time.Since(last); wait > 0 && !out.Closing() {
			return wait, nil
		}
		last = time.Now()
		regions, err := look(ctx)
		if err != nil {
			return 0, err
		}
		for _, r := range regions {
			text, err := u.render(pageName, r.part, r.data)
			if err != nil {
				return 0, err
			}
			if before, ok := sent[r.name]; ok && bytes.Equal(before, text) {
				continue
			}
			sent[r.name] = text
			if err := out.Event("", r.name, text); err != nil {
				return 0, err
			}
		}
		return rest, nil
	})
}

// serve opens a stream and makes it the answer.
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

// badgeLive is the stream of pages that only show how much waits.
func (u *frame) badgeLive(c *fiber.Ctx) error {
	return u.follow(c, "", "settings", func(ctx context.Context) ([]region, error) {
		b, err := u.badge(ctx)
		return []region{{"badge", "badge", b}}, err
	})
}
