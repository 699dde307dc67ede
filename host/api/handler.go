package api

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/web"
)

// Most routes do one thing: they find what the path names, ask a service, and answer. The functions
// below make their handlers.

// idIn reads the id that the path has under a name.
func idIn(name string) func(*fiber.Ctx) (string, error) {
	return func(c *fiber.Ctx) (string, error) { return web.ID(c, name) }
}

// slugIn is idIn for what its owner named, such as a destination.
func slugIn(c *fiber.Ctx) (string, error) {
	name, err := web.Param(c, "name")
	if err != nil || !abi.IsSlug(name) {
		return "", web.NotFound()
	}
	return name, nil
}

// found answers with the thing in the path.
func found[T any](find func(*fiber.Ctx) (T, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := find(c)
		return web.Answer(c, v, err)
	}
}

// answer answers with what do returns about the thing in the path.
func answer[ID, T any](find func(*fiber.Ctx) (ID, error), do func(context.Context, ID) (T, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := find(c)
		if err != nil {
			return err
		}
		v, err := do(web.Context(c), id)
		return web.Answer(c, v, err)
	}
}

// answerTo is answer for a route with a body.
func answerTo[ID, Body, T any](find func(*fiber.Ctx) (ID, error),
	do func(context.Context, ID, Body) (T, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := find(c)
		if err != nil {
			return err
		}
		var q Body
		if err := web.Body(c, &q); err != nil {
			return err
		}
		v, err := do(web.Context(c), id, q)
		return web.Answer(c, v, err)
	}
}

// done answers without content once do returns.
func done[ID any](find func(*fiber.Ctx) (ID, error), do func(context.Context, ID) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := find(c)
		if err != nil {
			return err
		}
		return web.Done(c, do(web.Context(c), id))
	}
}

// list answers with a page of what all returns, ordered by id.
func list[T any](all func(context.Context) ([]T, error), id func(T) string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		page, err := web.PageOf(c, 0, 0)
		if err != nil {
			return err
		}
		found, err := all(web.Context(c))
		if err != nil {
			return err
		}
		return listed(c, page, found, id)
	}
}

// listAll answers with all that all returns, on one page.
func listAll[T any](all func(context.Context) ([]T, error)) fiber.Handler {
	return listOf(func(*fiber.Ctx) (struct{}, error) { return struct{}{}, nil },
		func(ctx context.Context, _ struct{}) ([]T, error) { return all(ctx) })
}

// listOf answers with all that the thing in the path has, on one page.
func listOf[ID, T any](find func(*fiber.Ctx) (ID, error), all func(context.Context, ID) ([]T, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := find(c)
		if err != nil {
			return err
		}
		found, err := all(web.Context(c), id)
		if err != nil {
			return err
		}
		return web.Listed(c, found, "")
	}
}
