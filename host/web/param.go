package web

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
)

// maxParam bounds a path parameter; a record key has at most 1 KiB.
const maxParam = 4096

// Param returns a path parameter, decoded exactly once, so %2F stays part of it. "*" is the
// wildcard. The error is 404, since what cannot be a name names nothing.
func Param(c *fiber.Ctx, name string) (string, error) {
	v, err := url.PathUnescape(c.Params(name))
	if err != nil || v == "" || len(v) > maxParam || !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		return "", NotFound()
	}
	return strings.Clone(v), nil
}

var idForm = lazily(`^[A-Za-z0-9._-]{1,128}$`)

// ID returns a path parameter that is an id; anything else is 404.
func ID(c *fiber.Ctx, name string) (string, error) {
	v, err := Param(c, name)
	if err != nil || !idForm().MatchString(v) {
		return "", NotFound()
	}
	return v, nil
}

// IfMatch returns the revision of an If-Match header, or nil without one. The form is "<revision>"
// in quotes; * counts as none.
func IfMatch(c *fiber.Ctx) (*uint64, error) {
	v := c.Get(fiber.HeaderIfMatch)
	if v == "" || v == "*" {
		return nil, nil
	}
	rest, ok1 := strings.CutPrefix(v, `"`)
	rest, ok2 := strings.CutSuffix(rest, `"`)
	n, err := parseUint(rest)
	if !ok1 || !ok2 || err != nil {
		return nil, Invalid(Field{"header.If-Match", "a revision in quotes"})
	}
	return &n, nil
}
