package web

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
	"github.com/gofiber/fiber/v2"
)

const typeJSON = "application/json"

// JSON answers with a value. What it writes is escaped so that it is harmless
// inside HTML and script, also where v holds raw JSON.
func JSON(c *fiber.Ctx, status int, v any) error {
	body, err := Encode(v)
	if err != nil {
		return err
	}
	return Bytes(c, status, body)
}

// Answer is JSON with 200, unless an error kept v from being made.
func Answer(c *fiber.Ctx, v any, err error) error {
	if err != nil {
		return err
	}
	return JSON(c, fiber.StatusOK, v)
}

// Bytes answers with JSON that Encode made, such as a Slot's Writes got.
func Bytes(c *fiber.Ctx, status int, body []byte) error {
	c.Set(fiber.HeaderContentType, typeJSON)
	return c.Status(status).Send(body)
}

// Created answers 201 with where the new thing is.
func Created(c *fiber.Ctx, location string, v any) error {
	c.Set(fiber.HeaderLocation, location)
	return JSON(c, fiber.StatusCreated, v)
}

// Nothing answers 204.
func Nothing(c *fiber.Ctx) error {
	c.Response().ResetBody()
	c.Status(fiber.StatusNoContent)
	return nil
}

// Done is Nothing, unless what was asked for failed.
func Done(c *fiber.Ctx, err error) error {
	if err != nil {
		return err
	}
	return Nothing(c)
}

// Encode returns how values become JSON here: <, >, &, U+2028 and U+2029 are escaped,
// also in raw JSON, and times are in UTC with milliseconds.
func Encode(v any) ([]byte, error) {
	body, err := json.Marshal(v, encoding)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return body, nil
}

// encoding is that of the standard library, but for times.
var encoding = json.JoinOptions(v1.DefaultOptionsV1(), json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.UTC().Format("2006-01-02T15:04:05.000Z")))
})))

// Attachment makes the answer bytes of guests or persons: they are downloaded,
// never shown. name is a file name of the host's making.
func Attachment(c *fiber.Ctx, contentType, name string) {
	c.Set(fiber.HeaderContentType, contentType)
	c.Set(fiber.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", name))
	c.Set(fiber.HeaderContentSecurityPolicy, "sandbox")
}

// ContentSecurityPolicy of everything that is answered. The one policy of trusted
// types has the name sluice; default is for the page library, which knows no
// names.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types sluice default"

// headers sets what every answer carries. No CORS header is among them, and there
// is none anywhere.
func headers(c *fiber.Ctx, r *request) {
	h := &c.Response().Header
	h.Set(fiber.HeaderXRequestID, r.id)
	h.Set(fiber.HeaderContentSecurityPolicy, ContentSecurityPolicy)
	h.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	h.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(fiber.HeaderCacheControl, "no-store")
	if r.https {
		h.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
}
