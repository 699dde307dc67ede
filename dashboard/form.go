package dashboard

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/web"
)

// A form is what a page posts: JSON with all values of each field.
type form struct {
	values map[string][]string
	wrong  []web.Field
}

const maxFormFields = 2000

// formOf reads the form in the body. It shares no memory with the request.
func formOf(c *fiber.Ctx) (*form, error) {
	f := &form{}
	if err := web.OpenBody(c, &f.values); err != nil {
		return nil, err
	}
	if len(f.values) > maxFormFields {
		return nil, web.NewProblem(0, "payload_too_large", "The form has more than %d fields.", maxFormFields)
	}
	return f, nil
}

// text returns the first value of a field without surrounding space.
func (f *form) text(name string, maxBytes int) string {
	s := strings.TrimSpace(f.raw(name))
	if len(s) > maxBytes {
		f.fail(name, "at most "+strconv.Itoa(maxBytes)+" bytes")
	}
	return s
}

// raw returns the first value of a field as typed.
func (f *form) raw(name string) string {
	if v := f.values[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (f *form) all(name string) []string { return f.values[name] }
func (f *form) on(name string) bool      { return len(f.values[name]) > 0 }

// lines returns the non-empty lines of a field.
func (f *form) lines(name string) []string {
	var out []string
	for l := range strings.SplitSeq(f.raw(name), "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// number returns a whole number, or missing for an empty field.
func (f *form) number(name string, missing, least, most int64) int64 {
	s := f.text(name, 32)
	if s == "" {
		return missing
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		f.fail(name, "a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
	}
	return n
}

// date returns the end of a day in UTC, or nil for an empty field.
func (f *form) date(name string) *time.Time {
	s := f.text(name, 32)
	if s == "" {
		return nil
	}
	day, err := time.Parse(time.DateOnly, s)
	if err != nil {
		f.fail(name, "a day such as 2027-01-31")
		return nil
	}
	end := day.Add(24*time.Hour - time.Second)
	return &end
}

// button returns the handler of a button: it does something with what the path names, and reloads the page.
func button[ID any](find func(*fiber.Ctx) (ID, error), do func(context.Context, ID) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := find(c)
		if err != nil {
			return err
		}
		if _, err := formOf(c); err != nil {
			return err
		}
		return reload(c, do(web.Context(c), id))
	}
}

// unshown returns do for a button whose page shows the result by itself.
func unshown[ID, T any](do func(context.Context, ID) (T, error)) func(context.Context, ID) error {
	return func(ctx context.Context, id ID) error {
		_, err := do(ctx, id)
		return err
	}
}

// slugOf returns the name in the path of what its owner named, such as a destination.
func slugOf(c *fiber.Ctx) (string, error) {
	name, err := web.Param(c, "name")
	if err != nil || !abi.IsSlug(name) {
		return "", web.NotFound()
	}
	return name, nil
}

func (f *form) fail(name, rule string) { f.wrong = append(f.wrong, web.Field{Path: name, Rule: rule}) }

// placed renames the fields of an error to those of the form, according to names.
func placed(err error, names map[string]string) error {
	p, known := web.ProblemOf(err)
	if !known || p.Details["fields"] == nil {
		return err
	}
	raw, failed := json.Marshal(p.Details["fields"])
	var fields []web.Field
	if failed != nil || json.Unmarshal(raw, &fields) != nil {
		return err
	}
	out := web.NewProblem(p.Status, p.Code, "%s", p.Message)
	for i, f := range fields {
		out.Message = sentence(strings.TrimPrefix(out.Message, f.Path+": "))
		if name, ok := names[f.Path]; ok {
			fields[i].Path = name
		}
	}
	return out.With("fields", fields)
}

// err returns 400 validation_error with the invalid fields, or nil.
func (f *form) err() error {
	if len(f.wrong) > 0 {
		return web.Invalid(f.wrong...)
	}
	return nil
}
