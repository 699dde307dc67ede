package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// maxPart bounds every part of an upload that is not large.
const maxPart = 256 << 10

// Parts reads the parts of a multipart body, each at most once and only those in names. A part may
// have 256 KiB, those in large as much as the body.
func Parts(c *fiber.Ctx, names []string, large ...string) (map[string][]byte, error) {
	body, err := RawBody(c)
	if err != nil {
		return nil, err
	}
	_, params, err := mime.ParseMediaType(string(c.Request().Header.ContentType()))
	if err != nil || params["boundary"] == "" {
		return nil, brokenUpload()
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	seen := map[string][]byte{}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return seen, nil
		}
		if err != nil {
			return nil, brokenUpload()
		}
		name, most, size := part.FormName(), int64(maxPart), 0
		if slices.Contains(large, name) {
			most, size = MaxUpload, len(body)
		}
		if _, twice := seen[name]; twice || !slices.Contains(names, name) {
			return nil, Invalid(Field{Path: "body",
				Rule: "the parts " + strings.Join(names, ", ") + ", each at most once"})
		}
		content, err := readAll(io.LimitReader(part, most+1), size)
		if err != nil {
			return nil, brokenUpload()
		}
		if int64(len(content)) > most {
			return nil, NewProblem(0, "payload_too_large", "The part %s is larger than %d bytes.", name, most)
		}
		seen[name] = content
	}
}

func brokenUpload() error {
	return Invalid(Field{Path: "body", Rule: "multipart/form-data that arrived whole"})
}
