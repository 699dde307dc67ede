package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mmcdole/gofeed"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// maxFeedBytes is the most a feed may have.
const maxFeedBytes = 16 << 20

// A version is what a server called an answer, for the next question.
type version struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// maxVersion bounds either part: they go into a cursor.
const maxVersion = 200

// A fetched is an answer; feed is nil when nothing has changed.
type fetched struct {
	feed    *gofeed.Feed
	version version
}

// A trouble is why a feed is left out of a run.
type trouble struct {
	reason    string
	hint      string
	retryable bool
	err       error
}

func (t *trouble) Error() string { return t.err.Error() }
func (t *trouble) Unwrap() error { return t.err }

// fetch asks for what is newer than known.
func (c *collection) fetch(url string, known version) (*fetched, error) {
	header := [][2]string{{"Accept",
		"application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"}}
	if known.ETag != "" {
		header = append(header, [2]string{"If-None-Match", known.ETag})
	}
	if known.Modified != "" {
		header = append(header, [2]string{"If-Modified-Since", known.Modified})
	}
	resp, err := c.run.Fetch(guest.Request{URL: url, Header: header})
	if err != nil {
		return nil, unfetched(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.Status == 304:
		return &fetched{}, nil
	case resp.Status != 200:
		return nil, refused(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFeedBytes+1))
	if err != nil {
		return nil, unfetched(err)
	}
	if len(body) > maxFeedBytes {
		return nil, &trouble{"feed_unreadable", guest.RetryOnConnectorUpgrade, false,
			fmt.Errorf("it has more than %d MiB", maxFeedBytes>>20)}
	}
	feed, err := parse(body)
	if err != nil {
		return nil, &trouble{"feed_unreadable", guest.ManualActionRequired, false, err}
	}
	return &fetched{feed, versionOf(resp)}, nil
}

// refused is what another status than 200 means.
func refused(resp *guest.Response) error {
	again := resp.Status == 429 || resp.Status >= 500
	return &trouble{"feed_unavailable", hint(again), again, fmt.Errorf("the server answers %d", resp.Status)}
}

// unfetched says why a request failed, and lets a cancelled run end.
func unfetched(err error) error {
	if errors.Is(err, abi.ECANCELED) || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, abi.EDENIED) {
		return &trouble{"host_not_granted", guest.ManualActionRequired, false, err}
	}
	return &trouble{"feed_unavailable", guest.RetryByRuntime, true, err}
}

func hint(again bool) string {
	if again {
		return guest.RetryByRuntime
	}
	return guest.ManualActionRequired
}

func versionOf(resp *guest.Response) version {
	v := version{ETag: resp.Get("ETag"), Modified: resp.Get("Last-Modified")}
	if len(v.ETag) > maxVersion {
		v.ETag = ""
	}
	if len(v.Modified) > maxVersion {
		v.Modified = ""
	}
	return v
}
