package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// Body decodes the body into v, a pointer to a struct with json tags. Unknown members are refused
// by name; so are duplicate members, invalid UTF-8 and more than 64 levels. An absent body counts
// as {}. v shares no memory with the request.
func Body(c *fiber.Ctx, v any) error { return decode(c, v, true) }

// OpenBody is Body for an object that may have unknown members, such as openwop's cancel body.
func OpenBody(c *fiber.Ctx, v any) error { return decode(c, v, false) }

// RawBody returns the body as sent, for uploads. It is valid until the handler returns.
func RawBody(c *fiber.Ctx) ([]byte, error) { return requestOf(c).read(c) }

// ContentType returns the media type of the body in lower case, or "" if there is none.
func ContentType(c *fiber.Ctx) string {
	t, _, err := mime.ParseMediaType(string(c.Request().Header.ContentType()))
	if err != nil {
		return ""
	}
	return t
}

// Wipe overwrites a body that contains secrets. Handlers call it when they no longer need it. The
// connection's own buffer is overwritten by the next request.
func Wipe(c *fiber.Ctx) { clear(requestOf(c).body) }

func decode(c *fiber.Ctx, v any, closed bool) error {
	r := requestOf(c)
	body, err := r.read(c)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	if err := jsonType(c); err != nil {
		return err
	}
	return decodeObject(body, v, closed)
}

// Decode is Body for a part of an upload.
func Decode(body []byte, v any) error { return decodeObject(body, v, true) }

func decodeObject(body []byte, v any, closed bool) error {
	var s strictjson.Scanner
	members, err := s.Object(body)
	if err != nil {
		return malformed(err)
	}
	if closed {
		if err := checkMembers(members, v); err != nil {
			return err
		}
	}
	// Unmarshal ignores case, but in a closed object only exactly spelled members get here.
	if err := json.Unmarshal(body, v); err != nil {
		return mistyped(err)
	}
	return nil
}

// jsonType refuses bodies that are not application/json in UTF-8. A form could send other media
// types without a CORS preflight.
func jsonType(c *fiber.Ctx) error {
	t, params, err := mime.ParseMediaType(string(c.Request().Header.ContentType()))
	if charset, ok := params["charset"]; err != nil || t != typeJSON || ok && !strings.EqualFold(charset, "utf-8") {
		return NewProblem(0, "unsupported_media_type", "The body must be application/json in UTF-8.")
	}
	return nil
}

// readAll is io.ReadAll for a known size. It allocates the whole size only after the first mebibyte
// has arrived, since a length is easily announced.
func readAll(in io.Reader, size int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(min(size, 1<<20) + bytes.MinRead)
	if _, err := io.CopyN(&b, in, 1<<20); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return b.Bytes(), err
	}
	b.Grow(max(0, size-b.Len()) + bytes.MinRead)
	_, err := b.ReadFrom(in)
	return b.Bytes(), err
}

// read reads the body once, up to the limit of the route, whether or not its length was announced.
func (r *request) read(c *fiber.Ctx) ([]byte, error) {
	if r.bodyRead {
		return r.body, nil
	}
	limit := MaxBody
	if r.route != nil && r.route.Upload && ContentType(c) != typeJSON {
		limit = MaxUpload
		if err := r.upload(); err != nil {
			return nil, err
		}
	}
	in := c.Request().BodyStream()
	if n := c.Request().Header.ContentLength(); n > limit {
		drain(in)
		return nil, tooLarge(limit)
	}
	if in == nil {
		r.body = slices.Clone(c.Request().Body())
		if len(r.body) > limit {
			return nil, tooLarge(limit)
		}
		r.bodyRead = true
		return r.body, nil
	}
	body, err := readAll(io.LimitReader(in, int64(limit)+1), max(0, c.Request().Header.ContentLength()))
	switch {
	case len(body) > limit:
		drain(in)
		return nil, tooLarge(limit)
	case err != nil:
		return nil, NewProblem(400, "validation_error", "The body did not arrive whole.")
	}
	r.body, r.bodyRead = body, true
	if c.Request().Header.ContentLength() > 0 {
		pooled := c.Request().Body() // empty now, but it held the first bytes and will be reused
		clear(pooled[:cap(pooled)])
	}
	// From here on Ctx.Body is our copy. Otherwise it would try to read a chunked body again, which
	// by then is the next request.
	c.Request().SetBodyRaw(body)
	return body, nil
}

// upload takes a place for a large body, which leave gives back.
func (r *request) upload() error {
	if r.uploading {
		return nil
	}
	select {
	case r.app.uploads <- struct{}{}:
		r.uploading = true
		return nil
	default:
		p := NewProblem(0, "rate_limited", "Too many uploads are being taken. Wait and repeat.").
			With("scope", "global").With("limit", maxUploads).With("retryAfterMs", 1000)
		p.RetryAfter = time.Second
		return p
	}
}

// drain reads some more of a body that is too large. A client that is still sending when the
// connection closes would see a reset instead of the answer.
func drain(in io.Reader) {
	if in != nil {
		_, _ = io.CopyN(io.Discard, in, MaxBody)
	}
}

// hasUnread reports whether part of the body may still arrive. The connection cannot be reused
// then, since the rest would be read as the next request.
func (r *request) hasUnread(c *fiber.Ctx) bool {
	return c.Request().IsBodyStream() && !r.bodyRead && c.Request().Header.ContentLength() != 0
}

func malformed(err error) *Problem {
	p := Invalid(Field{"body", "a JSON object"})
	var syntax *strictjson.SyntaxError
	if errors.As(err, &syntax) {
		p.Message = "The body is not a JSON object as it must be: " + syntax.Reason + "."
		p.With("offset", syntax.Offset)
	}
	return p
}

// mistyped names the member with the wrong type, never its value.
func mistyped(err error) *Problem {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) && t.Field != "" {
		return Invalid(Field{t.Field, "of type " + typeName(t.Type)})
	}
	return Invalid(Field{"body", "members of the types that are documented"})
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Float32, reflect.Float64:
		return "number"
	}
	return "integer, in its range"
}

// checkMembers refuses members that v does not declare.
func checkMembers(members []strictjson.Member, v any) error {
	declared := map[string]bool{}
	addMembers(declared, reflect.TypeOf(v).Elem())
	var unknown []string
	for _, m := range members {
		if !declared[string(m.Name)] {
			unknown = append(unknown, shorten(string(m.Name)))
		}
	}
	if unknown == nil {
		return nil
	}
	slices.Sort(unknown)
	if len(unknown) > 20 {
		unknown = unknown[:20]
	}
	return NewProblem(400, "validation_error", "The body has members that are not known here.").With("unknown", unknown)
}

// shorten bounds a name that is repeated in an answer.
func shorten(name string) string {
	if len(name) <= 64 {
		return name
	}
	return strings.ToValidUTF8(name[:64], "") + "…"
}

// addMembers collects the names of a struct's members, including those of embedded structs.
func addMembers(names map[string]bool, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
		case tag != "":
			names[tag] = true
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			addMembers(names, f.Type)
		default:
			names[f.Name] = true
		}
	}
}
