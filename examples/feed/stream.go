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
}

// cursor is what a run leaves for the next.
type cursor struct {
	Versions map[string]version `json:"versions"`
}

func openStream(run *guest.Run, name string) (*stream, error) {
	f, ok := run.Filter(name)
	if !ok {
		return nil, nil
	}
	s := &stream{Filter: f, run: run, name: name, versions: map[string]version{}}
	var at cursor
	if known, err := run.State(name, &at); err != nil || !known {
		return s, err
	}
	maps.Copy(s.versions, at.Versions)
	return s, nil
}

// wanted reports whether the scope admits a feed.
func (s *stream) wanted(url string) bool { return s != nil && s.Admits(url) }

func (s *stream) seen(url string, v version) {
	if s.wanted(url) {
		s.versions[url] = v
	}
}

// checkpoint remembers the versions of the feeds that are still configured.
func (s *stream) checkpoint(urls []string) error {
	if s == nil {
		return nil
	}
	maps.DeleteFunc(s.versions, func(url string, v version) bool { return v == version{} || !slices.Contains(urls, url) })
	return s.run.Checkpoint(s.name, cursor{s.versions})
}
