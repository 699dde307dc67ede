package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host/web"
)

// A parameter that a route does not have is refused, with the one that was most
// likely meant.
func TestQueryOnly(t *testing.T) {
	names := []string{"limit", "cursor", "status"}
	for _, c := range []struct{ query, message, unknown string }{
		{"limit=1&status=done&status=failed", "", ""},
		{"", "", ""},
		{"limt=1", "The query has a parameter that this does not take; did you mean limit?", "limt"},
		{"limit=1&page=2", "The query has a parameter that this does not take; there are limit, cursor, status", "page"},
		{"%00x=1", "The query has a parameter that this does not take; there are limit, cursor, status", "\\u0000x"},
	} {
		app := fiber.New()
		var got error
		app.Get("/", func(ctx *fiber.Ctx) error {
			got = web.QueryOf(ctx).Only(names)
			return nil
		})
		if _, err := app.Test(httptest.NewRequest("GET", "/?"+c.query, nil)); err != nil {
			t.Fatal(err)
		}
		if c.message == "" {
			if got != nil {
				t.Errorf("%q: %v", c.query, got)
			}
			continue
		}
		p, ok := got.(*web.Problem)
		if !ok || p.Status != 400 || p.Message != c.message {
			t.Errorf("%q: %v, want %s", c.query, got, c.message)
			continue
		}
		if u := p.Details["unknown"].([]string); c.unknown[0] != '\\' && (len(u) != 1 || u[0] != c.unknown) ||
			strings.ContainsRune(u[0], 0) {
			t.Errorf("%q: unknown %q", c.query, u)
		}
	}
}
