package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	ical "github.com/emersion/go-ical"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

const (
	maxAttachments = 20
	maxURL         = 2000
)

// reasonAttachment says why an event or task is without one of its files.
const reasonAttachment = "attachment_left_out"

// attach puts the files of an event or task into its record: those within the object, and
// those that the server itself keeps (RFC 8607). Others are URLs alone: anybody may write one
// into an invitation. o.lacks is why one is missing that may be had another time.
func (c *collector) attach(ctx context.Context, s *stream, o *object, r record, all []*ical.Component) error {
	files, urls, tried := []*guest.File{}, []string{}, 0
	seen := map[string]bool{}
	for _, component := range all {
		for _, p := range component.Props.Values(ical.PropAttach) {
			inline := strings.EqualFold(p.Params.Get(ical.ParamEncoding), "BASE64") ||
				strings.EqualFold(p.Params.Get(ical.ParamValue), "BINARY")
			if !inline {
				if text := clean(p.Value); text != "" && len(text) <= maxURL && len(urls) < maxList && !seen[text] {
					urls, seen[text] = append(urls, text), true
				} else {
					continue
				}
			}
			if !s.Wants("attachments") || !inline && !o.near(p.Value) {
				continue
			}
			if tried++; tried > maxAttachments {
				break
			}
			f, err := c.attachment(ctx, s, o, &p, inline)
			var t *trouble
			switch {
			case errors.As(err, &t) && t.retryable:
				o.lacks = t
			case errors.As(err, &t):
				err = c.skip([]*stream{s}, o.path, &trouble{reason: reasonAttachment, hint: t.hint, err: t.err})
				if err != nil {
					return err
				}
			case err != nil:
				return err
			case !seen[f.Digest]:
				files, seen[f.Digest] = append(files, f), true
			}
		}
	}
	r["attachments"], r["attachment_urls"] = files, urls
	if tried > maxAttachments {
		return c.skip([]*stream{s}, o.path,
			troublef(reasonAttachment, "%s has more than %d attachments", o.path, maxAttachments))
	}
	return nil
}

// near reports whether a URL leads to the server that the object is from. Only that is asked:
// whoever sends an invitation writes the URL.
func (o *object) near(text string) bool {
	u, err := url.Parse(strings.TrimSpace(text))
	return err == nil && u.User == nil && o.url != nil && u.Scheme == o.url.Scheme && u.Host == o.url.Host
}

// attachment hands one file to the host. One that the server keeps goes from its answer to
// the store and does not come here.
func (c *collector) attachment(ctx context.Context, s *stream, o *object, p *ical.Prop,
	inline bool) (*guest.File, error) {
	a := guest.Attachment{Stream: s.name, Field: "attachments", MediaType: p.Params.Get(ical.ParamFormatType),
		Name: clean(cmp.Or(p.Params.Get("FILENAME"), p.Params.Get("X-FILENAME"), p.Params.Get("X-LABEL")))}
	if inline {
		content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(p.Value), ""))
		if err != nil {
			return nil, troublef(reasonAttachment, "%s: an attachment is no base64", o.path)
		}
		a.Content = strings.NewReader(string(content))
		f, err := c.run.Attach(a)
		return f, unattached(err, o.path)
	}
	u, err := url.Parse(strings.TrimSpace(p.Value))
	if err != nil {
		return nil, troublef(reasonAttachment, "%s: %w", o.path, err)
	}
	answer, err := c.d.client.do(ctx, ask{method: http.MethodGet, url: u, want: http.StatusOK})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	a.Content = answer.Body
	a.Name, a.MediaType = cmp.Or(a.Name, path.Base(u.Path)), cmp.Or(a.MediaType, answer.Header.Get("Content-Type"))
	f, err := c.run.Attach(a)
	return f, unattached(err, "GET "+u.Redacted())
}

// unattached says why a file is left out: a quota, a secret in it, a host that keeps none, or
// a server that breaks off.
func unattached(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, abi.ETOOBIG), errors.Is(err, abi.ENOSPC), errors.Is(err, abi.ENOTSUP), errors.Is(err, abi.EDENIED):
		return troublef(reasonAttachment, "%s: %w", what, err)
	}
	return unsent(err, what)
}
