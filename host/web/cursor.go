package web

import (
	"crypto/hmac"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// Sizes of pages.
const (
	PageLimit = 50
	PageMost  = 500
	// bytes of the MAC in a cursor
	macBytes  = 16
	maxCursor = 4096
)

// A Page is the requested part of a list.
type Page struct {
	Limit int
	// After is the position passed to NextCursor for the previous page; "" is the beginning.
	After string
}

// PageOf parses limit and cursor. A cursor is valid for the same path and the same other parameters
// in any order, and cannot be forged: 400 invalid_cursor. missing and most are the default and
// maximum limit, 0 for PageLimit and PageMost.
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

// NextCursor returns the cursor for what follows after, or nil if after is "" because nothing
// follows.
func NextCursor(c *fiber.Ctx, after string) *string {
	if after == "" {
		return nil
	}
	s := base64.RawURLEncoding.EncodeToString(append(cursorMAC(c, []byte(after)), after...))
	return &s
}

// List is the answer of every list.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// Listed answers with a page. after is the position to continue from, "" at the end.
func Listed[T any](c *fiber.Ctx, data []T, after string) error {
	if data == nil {
		data = []T{}
	}
	return JSON(c, fiber.StatusOK, List[T]{data, NextCursor(c, after)})
}

// cursorMAC binds a position to the path, the parameters, and what the principal may see.
func cursorMAC(c *fiber.Ctx, after []byte) []byte {
	r := requestOf(c)
	var args []string
	for k, v := range c.Context().QueryArgs().All() {
		if name := string(k); name != "cursor" && name != "limit" {
			args = append(args, name+"\x00"+string(v))
		}
	}
	slices.Sort(args)
	return r.app.o.Access.MAC("cursor", after, []byte(r.path), []byte(strings.Join(args, "\x00\x00")),
		[]byte(r.partition()))[:macBytes]
}
