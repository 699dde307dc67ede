// Command feed is a connector that collects web feeds: RSS, Atom and JSON Feed.
// It asks for each only what is new since the last run, by ETag and
// Last-Modified. What a feed no longer lists stays: feeds list their latest
// entries only. gofeed reads the formats, and Run.Fetch asks for them.
package main

import (
	"context"
	"errors"

	"github.com/mmcdole/gofeed"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

func main() { guest.Main(connector) }

// A collection is one run.
type collection struct {
	run     *guest.Run
	files   bool    // enclosures are wanted
	left    int     // enclosures
	feeds   *stream // nil: not in scope
	entries *stream
}

func collect(_ context.Context, run *guest.Run) error {
	set, err := readSettings(run)
	if err != nil {
		return err
	}
	c := &collection{run: run}
	if c.feeds, err = openStream(run, "feeds"); err != nil {
		return err
	}
	if c.entries, err = openStream(run, "entries"); err != nil {
		return err
	}
	c.files = set.Enclosures && c.entries != nil && c.entries.Wants("files")
	failed, urls := 0, set.Feeds
	for i, u := range urls {
		if err := run.Progress("Reading feeds", guest.Count(i), guest.Total(len(urls))); err != nil {
			return err
		}
		var t *trouble
		switch err := c.collect(u); {
		case errors.As(err, &t):
			if failed++; failed == len(urls) {
				return guest.Fail(t.reason, t.retryable, t.hint, "%s: %w", u, t.err)
			}
			if err := c.skip(u, t); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return errors.Join(c.feeds.checkpoint(urls, false), c.entries.checkpoint(urls, c.files))
}

// collect fetches one feed and emits what is in it.
func (c *collection) collect(url string) error {
	if !c.feeds.wanted(url) && !c.entries.wanted(url) {
		return nil
	}
	got, err := c.fetch(url, c.known(url))
	if err != nil || got.feed == nil {
		return err
	}
	if c.feeds.wanted(url) {
		if err := c.feeds.putFeed(url, got.feed); err != nil {
			return err
		}
	}
	if c.entries.wanted(url) {
		whole, err := c.putEntries(url, got.feed.Items)
		if err != nil {
			return err
		}
		if !whole {
			got.version = version{} // next time everything is looked at again
		}
	}
	c.feeds.seen(url, got.version)
	c.entries.seen(url, got.version)
	return nil
}

// putEntries emits the entries of a feed. With their enclosures it emits only those that
// are new or changed, for each would be fetched again. whole is false where a file that is
// missing may be had another time.
func (c *collection) putEntries(url string, items []*gofeed.Item) (whole bool, err error) {
	s, whole := c.entries, true
	var kept []imprint
	known := s.files[url].prints()
	for _, item := range items {
		id, r := s.entry(url, item)
		if id == "" {
			continue
		}
		if !c.files {
			if err := s.put(id, r); err != nil {
				return false, err
			}
			continue
		}
		p := imprintOf(id, r)
		if !known[p] || !s.run.Incremental() {
			files, all, err := c.keep(item)
			if err != nil {
				return false, err
			}
			r["files"] = files
			if err := s.put(id, r); err != nil {
				return false, err
			}
			if whole = whole && all; !all {
				continue
			}
		}
		kept = append(kept, p)
	}
	s.files[url] = memoryOf(kept)
	return whole, nil
}

// known is the version of a feed that every stream in scope has, none if they
// differ: then it is fetched whole.
func (c *collection) known(url string) version {
	switch {
	case c.files && !c.entries.filed, !c.files && c.entries != nil && c.entries.filed:
		return version{} // enclosures are wanted, or not, for the first time
	case c.feeds == nil:
		return c.entries.versions[url]
	case c.entries == nil || c.feeds.versions[url] == c.entries.versions[url]:
		return c.feeds.versions[url]
	}
	return version{}
}

// skip tells that a feed is missing from this run.
func (c *collection) skip(url string, t *trouble) error {
	for _, s := range []*stream{c.feeds, c.entries} {
		if s == nil {
			continue
		}
		err := c.run.Skip(guest.Skip{Stream: s.name, Reason: t.reason, Message: url + ": " + t.Error(),
			RecoveryHint: &guest.Hint{Action: t.hint, Retryable: &t.retryable}, ResourceIDs: []string{url}})
		if err != nil {
			return err
		}
	}
	return nil
}
