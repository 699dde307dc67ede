// Command ical is a connector that collects calendar files: the calendars,
// their events and the alarms of those.
//
// It trusts nothing in the files: sizes, nesting and repetitions are bounded,
// and what cannot be read is reported and costs no more than itself. go-ical
// reads content lines and properties, rrule-go counts repetitions; folding,
// cutting files into components, times and time zones are done here, so that
// one bad line does not take a calendar with it and no step of the counting
// depends on changes of clocks.
package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	guest "github.com/sluicehost/sluice/guest-sdk"
)

var connector = guest.Connector{Collect: collect}

// softMemory makes the collector work harder before a guest's 256 MiB are full.
// Under wasm there is one thread and nothing preempts it, so the collector gets
// its turn when the connector yields: every long loop calls runtime.Gosched.
const softMemory = 192 << 20

func main() {
	debug.SetMemoryLimit(softMemory)
	guest.Main(connector)
}

func collect(ctx context.Context, run *guest.Run) error {
	set, err := readSettings(run, time.Now())
	if err != nil {
		return err
	}
	root, ok := run.Mount("calendars")
	if !ok {
		return guest.Fail("mount_missing", false, guest.ManualActionRequired,
			"no directory is mounted as calendars: run with --mount calendars=DIR")
	}
	files, err := openFolder(root)
	if err != nil {
		return guest.Fail("folder_unreadable", true, guest.RetryByRuntime, "%w", err)
	}
	c := &collection{
		run: run, set: set, files: files, trouble: newTrouble(),
		calendars: openInventory(run, "calendars", nil),
		events:    openInventory(run, "events", set.shape()),
		alarms:    openInventory(run, "alarms", nil),
	}
	return c.collect(ctx)
}

// A collection is one run.
type collection struct {
	run     *guest.Run
	set     *settings
	files   *folder
	trouble *trouble

	calendars, events, alarms *inventory // nil: not in scope
}

func (c *collection) collect(ctx context.Context) error {
	stamp := c.files.stamp()
	if c.calendars.current(stamp) && c.events.current(stamp) && c.alarms.current(stamp) {
		return c.run.Progress("Nothing has changed since the last run")
	}
	l, err := c.read(ctx)
	if err != nil {
		return err
	}
	if err := c.put(ctx, l); err != nil {
		return err
	}
	if l.unread > 0 {
		stamp = "" // try again, though nothing may have changed
	}
	for _, v := range []*inventory{c.calendars, c.events, c.alarms} {
		if v == nil {
			continue
		}
		incomplete := l.broken > 0 || l.full || c.files.more || v == c.alarms && len(l.kept) > 0
		if err := v.finish(stamp, incomplete); err != nil {
			return err
		}
	}
	if l.full || c.files.more {
		err := c.run.Skip(guest.Skip{Reason: "too_many_files",
			Message: fmt.Sprintf("More than %d files, %d folders in each other, %d events or %d MiB: the rest is left out.",
				maxFiles, maxDepth, maxEvents, maxBytes>>20)})
		if err != nil {
			return err
		}
	}
	return c.trouble.send(c.run)
}

// read reads all files.
func (c *collection) read(ctx context.Context) (*library, error) {
	l := newLibrary(c.trouble)
	for i, f := range c.files.files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data, err := c.files.read(f.path)
		if err != nil {
			l.unread++
			l.breakFile(f.path, err)
			continue
		}
		l.addFile(f.path, data)
		if n := i + 1; n%500 == 0 || n == len(c.files.files) {
			err := c.run.Progress(fmt.Sprintf("Read %d of %d files, %d events", n, len(c.files.files), len(l.events)),
				guest.Count(n), guest.Total(len(c.files.files)))
			if err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// put emits what changed.
func (c *collection) put(ctx context.Context, l *library) error {
	if c.calendars != nil {
		for _, one := range l.calendars {
			if err := c.calendars.putCalendar(one); err != nil {
				return err
			}
		}
	}
	changed := seriesOf(l.events)
	for _, e := range l.events {
		runtime.Gosched() // see softMemory
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.events != nil {
			if err := c.events.putEvent(e, changed, c.set, c.trouble); err != nil {
				return err
			}
		}
		if c.alarms != nil {
			if err := c.alarms.putAlarms(e); err != nil {
				return err
			}
		}
	}
	if c.events != nil {
		for k := range l.kept {
			c.events.pass(k)
		}
	}
	return nil
}
