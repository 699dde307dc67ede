package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/mmcdole/gofeed"
)

func parse(body []byte) (*gofeed.Feed, error) {
	return gofeed.NewParser().Parse(bytes.NewReader(body))
}

// A record is emitted without the members that the scope leaves out.
type record map[string]any

func (s *stream) put(key string, r record) error {
	for name := range r {
		if !s.Wants(name) {
			delete(r, name)
		}
	}
	return s.run.Emit(s.name, key, r)
}

func (s *stream) putFeed(url string, f *gofeed.Feed) error {
	return s.put(url, record{
		"url": url, "title": text(f.Title), "description": text(f.Description), "link": text(f.Link),
		"language": text(f.Language), "kind": f.FeedType, "updated_at": moment(f.UpdatedParsed, f.PublishedParsed),
	})
}

// entry is the record of an entry; "" is the key of one that is left out.
func (s *stream) entry(url string, i *gofeed.Item) (id string, r record) {
	name := i.GUID
	if name == "" {
		name = i.Link
	}
	if name == "" {
		name = i.Title
	}
	if name == "" {
		return "", nil // nothing tells it from another
	}
	sum := sha256.Sum256([]byte(url + "\n" + name))
	id = hex.EncodeToString(sum[:16])
	published := moment(i.PublishedParsed, i.UpdatedParsed)
	at, _ := published.(string)
	if !s.AdmitsTime(at) {
		return "", nil
	}
	authors, attachments := []string{}, []string{}
	for _, a := range i.Authors {
		if a != nil && a.Name+a.Email != "" {
			authors = append(authors, first(a.Name, a.Email))
		}
	}
	for _, e := range i.Enclosures {
		if e != nil && e.URL != "" {
			attachments = append(attachments, e.URL)
		}
	}
	return id, record{
		"id": id, "feed": url, "guid": text(i.GUID), "title": text(i.Title), "link": text(i.Link), "authors": authors,
		"summary": text(i.Description), "content": text(i.Content), "categories": append([]string{}, i.Categories...),
		"attachments": attachments, "published_at": published, "updated_at": moment(i.UpdatedParsed, nil),
	}
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// text is null for "".
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// moment is the first of two times that a record can hold, or null.
func moment(times ...*time.Time) any {
	for _, t := range times {
		if t != nil && t.Year() >= 0 && t.Year() <= 9999 {
			return t.UTC().Format(time.RFC3339)
		}
	}
	return nil
}
