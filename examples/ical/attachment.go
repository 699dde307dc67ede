package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	ical "github.com/emersion/go-ical"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

const (
	maxAttachments = 20      // of an event
	maxAttachment  = 8 << 20 // its line, in base64
	maxURL         = 2000
)

// attachments are what an event holds within itself, and the URLs of what is elsewhere:
// this connector reads files and has no network.
func (e *event) attachments() (inline []ical.Prop, urls []string) {
	urls = []string{}
	for _, p := range e.props.Values(ical.PropAttach) {
		switch {
		case strings.EqualFold(p.Params.Get(ical.ParamEncoding), "BASE64") ||
			strings.EqualFold(p.Params.Get(ical.ParamValue), "BINARY"):
			inline = append(inline, p)
		case len(p.Value) <= maxURL && len(urls) < maxList:
			if u := clean(p.Value); u != "" {
				urls = append(urls, u)
			}
		}
	}
	return inline, urls
}

// sumOf stands for attachments without their content.
func sumOf(inline []ical.Prop) []byte {
	h := sha256.New()
	for _, p := range inline {
		sum := sha256.Sum256([]byte(p.Value))
		h.Write(append(sum[:], textOfParams(p.Params)...))
	}
	return h.Sum(nil)
}

// textOfParams is what an attachment says of itself.
func textOfParams(p ical.Params) string {
	name := cmp.Or(p.Get("FILENAME"), p.Get("X-FILENAME"), p.Get("X-LABEL"))
	return clean(name) + "\x00" + p.Get(ical.ParamFormatType)
}

// attach hands the attachments of an event to the host. whole is false where one of them is
// left out.
func (v *inventory) attach(e *event, inline []ical.Prop, t *trouble) (files []*guest.File, whole bool, err error) {
	files, whole = []*guest.File{}, true
	leave := func(why string) {
		whole = false
		t.add("attachment_left_out", e.calendar, "%s: event %.100q: %s", e.calendar, e.uid, why)
	}
	for i, p := range inline {
		if i == maxAttachments {
			leave("it has too many attachments")
			break
		}
		content, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(p.Value), ""))
		if err != nil {
			leave("an attachment is no base64")
			continue
		}
		name, media, _ := strings.Cut(textOfParams(p.Params), "\x00")
		f, err := v.run.Attach(guest.Attachment{Stream: v.name, Field: "attachments", Name: name, MediaType: media,
			Content: strings.NewReader(string(content))})
		switch {
		case errors.Is(err, abi.ETOOBIG), errors.Is(err, abi.ENOSPC), errors.Is(err, abi.ENOTSUP),
			errors.Is(err, abi.EDENIED):
			leave(err.Error())
		case err != nil:
			return nil, false, err
		default:
			files = append(files, f)
		}
	}
	return files, whole, nil
}
