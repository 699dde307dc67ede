package main

import (
	"maps"
	"slices"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

// A stream emits the records of one stream of the scope and remembers which
// version of each feed is in it. A nil stream is not in scope.
type stream struct {
	*guest.Filter
	run      *guest.Run
	name     string
	versions map[string]version
	files    map[string]memory // by feed, of a stream of entries with enclosures
	filed    bool              // the last run kept enclosures
}

// cursor is what a run leaves for the next.
type cursor struct {
	Versions map[string]version `json:"versions"`
	Files    map[string]memory  `json:"files,omitempty"`
	Filed    bool               `json:"filed,omitempty"`
}

func openStream(run *guest.Run, name string) (*stream, error) {
	f, ok := run.Filter(name)
	if !ok {
		return nil, nil
	}
	s := &stream{Filter: f, run: run, name: name, versions: map[string]version{}, files: map[string]memory{}}
	var at cursor
	if known, err := run.State(name, &at); err != nil || !known {
		return s, err
	}
	maps.Copy(s.versions, at.Versions)
	maps.Copy(s.files, at.Files)
	s.filed = at.Filed
	return s, nil
}

// wanted reports whether the scope admits a feed.
func (s *stream) wanted(url string) bool { return s != nil && s.Admits(url) }

func (s *stream) seen(url string, v version) {
	if s.wanted(url) {
		s.versions[url] = v
	}
}

// checkpoint remembers the versions of the feeds that are still configured, and which of their
// entries are stored with their enclosures, as far as a cursor has room for them.
func (s *stream) checkpoint(urls []string, filed bool) error {
	if s == nil {
		return nil
	}
	maps.DeleteFunc(s.versions, func(url string, v version) bool { return v == version{} || !slices.Contains(urls, url) })
	room := maxKept
	for url, m := range s.files {
		if room -= len(m.prints()); !filed || room < 0 || m == "" || !slices.Contains(urls, url) {
			delete(s.files, url)
		}
	}
	return s.run.Checkpoint(s.name, cursor{s.versions, s.files, filed})
}
