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

// JSON answers with a value. The output is escaped so that it is harmless inside HTML and scripts,
// also where v contains raw JSON.
func JSON(c *fiber.Ctx, status int, v any) error {
	body, err := Encode(v)
	if err != nil {
		return err
	}
	return Bytes(c, status, body)
}

// Answer answers with v and 200, unless err is set.
func Answer(c *fiber.Ctx, v any, err error) error {
	if err != nil {
		return err
	}
	return JSON(c, fiber.StatusOK, v)
}

// Bytes answers with JSON made by Encode, such as what a Slot stores.
func Bytes(c *fiber.Ctx, status int, body []byte) error {
	c.Set(fiber.HeaderContentType, typeJSON)
	return c.Status(status).Send(body)
}

// Created answers 201 with the location of the new resource.
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

// Done answers 204, unless err is set.
func Done(c *fiber.Ctx, err error) error {
	if err != nil {
		return err
	}
	return Nothing(c)
}

// Encode encodes a value as JSON: <, >, &, U+2028 and U+2029 are escaped, also in raw JSON, and
// times are in UTC with milliseconds.
func Encode(v any) ([]byte, error) {
	body, err := json.Marshal(v, encoding)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return body, nil
}

// encoding equals the standard library's, except for times.
var encoding = json.JoinOptions(v1.DefaultOptionsV1(),
	json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
		return e.WriteToken(jsontext.String(t.UTC().Format("2006-01-02T15:04:05.000Z")))
	})))

// Attachment makes the answer a download, for bytes of guests or persons, so that it is never
// shown. The host chooses name.
func Attachment(c *fiber.Ctx, contentType, name string) {
	c.Set(fiber.HeaderContentType, contentType)
	c.Set(fiber.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", name))
	c.Set(fiber.HeaderContentSecurityPolicy, "sandbox")
}

// ContentSecurityPolicy is part of every answer. The trusted-types policy named sluice is ours;
// default is for the page library, which does not use names.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"font-src 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types sluice default"

// headers sets the headers of every answer. None of them is a CORS header, and none is sent
// anywhere.
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
