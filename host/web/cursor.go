package web

import (
	"crypto/hmac"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// The pages of lists.
const (
	PageLimit = 50
	PageMost  = 500
	// macBytes of the code that authenticates a cursor are in it.
	macBytes  = 16
	maxCursor = 4096
)

// A Page is the part of a list that is asked for.
type Page struct {
	Limit int
	// After is what NextCursor was given for the page before; "" is the beginning.
	After string
}

// PageOf reads limit and cursor. A cursor is good for the same path and the same
// other parameters, in any order, and nobody can make one: 400
// invalid_cursor. missing and most are those of the list, 0 for PageLimit and
// PageMost.
func PageOf(c *fiber.Ctx, missing, most int) (Page, error) {
	if missing == 0 {
		missing = PageLimit
	}
	if most == 0 {
		most = PageMost
	}
	q := QueryOf(c)
	p := Page{Limit: int(q.Int("limit", int64(missing), 1, int64(most)))}
	if err := q.Err(); err != nil {
		return Page{}, err
	}
	cursor := string(c.Context().QueryArgs().Peek("cursor"))
	if cursor == "" {
		return p, nil
	}
	bad := NewProblem(0, "invalid_cursor", "The cursor is not one of this query. Read from the beginning.")
	if len(cursor) > maxCursor {
		return Page{}, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) <= macBytes || !hmac.Equal(b[:macBytes], cursorMAC(c, b[macBytes:])) {
		return Page{}, bad
	}
	p.After = string(b[macBytes:])
	return p, nil
}

// NextCursor returns the nextCursor of a page that ends with the thing after: null
// when there is nothing more, which "" says.
func NextCursor(c *fiber.Ctx, after string) *string {
	if after == "" {
		return nil
	}
	s := base64.RawURLEncoding.EncodeToString(append(cursorMAC(c, []byte(after)), after...))
	return &s
}

// List is how lists are answered.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// Listed answers with a page. after is what continues behind it, "" at the end.
func Listed[T any](c *fiber.Ctx, data []T, after string) error {
	if data == nil {
		data = []T{}
	}
	return JSON(c, fiber.StatusOK, List[T]{data, NextCursor(c, after)})
}

// cursorMAC binds a position to path, parameters, and to what the principal may
// see.
func cursorMAC(c *fiber.Ctx, after []byte) []byte {
	r := requestOf(c)
	var args []string
	for k, v := range c.Context().QueryArgs().All() {
		if name := string(k); name != "cursor" && name != "limit" {
			args = append(args, name+"\x00"+string(v))
		}
	}
	slices.Sort(args)
	return r.app.o.Access.MAC("cursor", after, []byte(r.path), []byte(strings.Join(args, "\x00\x00")), []byte(r.partition()))[:macBytes]
}
