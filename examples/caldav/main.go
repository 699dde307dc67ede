// Command caldav is a connector that collects calendars and address books from
// a server that speaks CalDAV (RFC 4791) and CardDAV (RFC 6352).
//
// It asks for what is new: by sync token (RFC 6578) where the server has them,
// by comparing ETags where it has not or forgot the token. The password is
// sealed, so the connector never sees it. go-ical and go-vcard read the
// objects; the protocol is done here with encoding/xml, so that a redirect, a
// refused object or half an answer costs no more than itself.
package main

import (
	"context"
	"errors"
	"runtime/debug"

	guest "github.com/sluicehost/sluice/guest-sdk"
	"github.com/sluicehost/sluice/guest-sdk/guesthttp"
)

var connector = guest.Connector{Collect: collect}

// softMemory makes the collector work harder before a guest's 256 MiB are full.
const softMemory = 192 << 20

func main() {
	debug.SetMemoryLimit(softMemory)
	guest.Main(connector)
}

// A kind is what differs between calendars and address books.
type kind struct {
	name      string // as in messages
	wellKnown string
	lists     string   // the stream of collections
	holds     []string // the streams of what is in them
	multiget  string   // the REPORT that fetches objects
	emit      func(c *collector, ctx context.Context, o *object, data []byte) (marks, error)
}

var kinds = []*kind{
	{name: "calendar", wellKnown: "/.well-known/caldav", lists: "calendars", holds: []string{"events", "todos"},
		multiget: calendarMultiget, emit: (*collector).putCalendarObject},
	{name: "address book", wellKnown: "/.well-known/carddav", lists: "address_books", holds: []string{"contacts"},
		multiget: addressbookMultiget, emit: (*collector).putCard},
}

func collect(ctx context.Context, run *guest.Run) error {
	set, err := readSettings(run)
	if err != nil {
		return err
	}
	d := &discovery{client: newClient(guesthttp.Client(run), set), start: set.url, seen: map[string]*found{}}
	var missing []*collector // kinds of which nothing could be had
	var last *trouble
	asked := 0
	for _, k := range kinds {
		c, err := newCollector(run, d, k)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		asked++
		err = c.collect(ctx)
		if t, ok := errors.AsType[*trouble](err); ok {
			missing, last, err = append(missing, c), t, nil
			if t.reason == reasonLogin {
				break // the next request could lock the account
			}
		}
		if err != nil {
			return err
		}
	}
	if last != nil && (len(missing) == asked || last.reason == reasonLogin) {
		return guest.Fail(last.reason, last.retryable, last.hint, "%w", last.err)
	}
	for _, c := range missing {
		if err := c.tell(); err != nil {
			return err
		}
	}
	return nil
}
