package schedule_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/schedule"
	"github.com/sluicehost/sluice/tests/campaign"
)

// zones have changes of every sort, each with the first of ten years that show
// them: half an hour, at midnight, a day left out, twice a year around Ramadan,
// winter as the exception, two hours at once, an end of it all.
var zones = map[string]int{
	"UTC":                    2016,
	"Europe/Berlin":          2016,
	"Europe/Dublin":          2016,
	"Europe/Istanbul":        2009,
	"Europe/Moscow":          2009,
	"America/New_York":       2016,
	"America/Sao_Paulo":      2010,
	"America/Havana":         2016,
	"America/St_Johns":       2006,
	"America/Caracas":        2007,
	"America/Santiago":       2014,
	"America/Nuuk":           2016,
	"Australia/Lord_Howe":    2016,
	"Africa/Casablanca":      2014,
	"Africa/Cairo":           2015,
	"Asia/Tehran":            2014,
	"Asia/Kathmandu":         2016,
	"Asia/Amman":             2013,
	"Pacific/Apia":           2008,
	"Antarctica/Troll":       2012,
	"Pacific/Chatham":        2016,
	"Asia/Pyongyang":         2012,
	"Antarctica/Casey":       2009,
	"America/Port-au-Prince": 2011,
}

// sparse expressions are compared through all ten years, dense ones for the hours
// around each change.
var (
	sparse = []string{
		"30 2 * * *", "0 0 * * *", "59 23 * * *", "15,45 1-3 * * *", "0 3 * * 0", "5 0 1 * *", "0 12 31 * *", "0 0 29 2 *",
		"30 1 1-7 * sun", "@daily", "@weekly", "@monthly", "@yearly",
		"0 */6 * * *", "30 * 1,15 * *", "*/30 2 * * 0", "0 ? 25 3,10,11 ?",
	}
	dense = []string{"*/5 * * * *", "* * * * *", "7-59/13 * * * *", "@hourly", "*/20 0-3 * * *"}
)

// TestEveryInstantOfTenYears compares with instants that come from walking every minute of ten years and reading the
// clock on the wall: in every zone in a soak, in the two strangest otherwise.
func TestEveryInstantOfTenYears(t *testing.T) {
	var compared atomic.Int64
	t.Cleanup(func() {
		t.Logf("10 years in %d zones: %d instants of %d expressions", len(zones), compared.Load(), len(sparse)+len(dense))
	})
	for name, year := range zones {
		if !campaign.Soak() && name != "Australia/Lord_Howe" && name != "Africa/Casablanca" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := schedule.LoadZone(name)
			if err != nil {
				t.Fatal(err)
			}
			compared.Add(int64(tenYears(t, zone, year)))
		})
	}
}

func tenYears(t *testing.T, zone *time.Location, year int) (compared int) {
	from, until := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year+10, 1, 1, 0, 0, 0, 0, time.UTC)
	walk := minutes(from, until, zone)
	for _, text := range sparse {
		compared += compare(t, text, zone, walk, from, until)
	}
	for at := from; ; {
		_, change := at.In(zone).ZoneBounds()
		if change.IsZero() || change.After(until) {
			return compared
		}
		a, b := change.Add(-30*time.Hour), change.Add(30*time.Hour)
		around := minutes(a, b, zone)
		for _, text := range dense {
			compared += compare(t, text, zone, around, a, b)
		}
		at = change
	}
}

// A minute of real time: what the wall shows at it. Local time that was skipped
// before it is gap minutes long.
type minute struct {
	at   int32 // minutes since 1970
	wall int32 // the same, of the wall clock
	gap  int16
	day  int16 // minute of the day on the wall
	seen bool  // the wall showed this before
}

func minutes(from, until time.Time, zone *time.Location) []minute {
	start, end := from.Unix()/60, until.Unix()/60
	out := make([]minute, 0, end-start)
	var last, most int64
	var bound time.Time
	var offset int64
	for at := start - 2*24*60; at < end; at++ { // what was shown shortly before counts as seen
		if now := time.Unix(at*60, 0); bound.IsZero() || !now.Before(bound) {
			_, bound = now.In(zone).ZoneBounds()
			_, seconds := now.In(zone).Zone()
			offset = int64(seconds) / 60
			if bound.IsZero() {
				bound = until
			}
		}
		wall := at + offset
		m := minute{at: int32(at), wall: int32(wall), day: int16(wall % 1440), seen: wall <= most && most != 0}
		if last != 0 && wall > last+1 {
			m.gap = int16(wall - last - 1)
		}
		last, most = wall, max(most, wall)
		if at > start {
			out = append(out, m)
		}
	}
	return out
}

// compare walks with the expression and with the clock, and says how many
// instants were the same.
func compare(t *testing.T, text string, zone *time.Location, walk []minute, from, until time.Time) int {
	t.Helper()
	e, err := schedule.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	o := read(t, text)
	at, n := from, 0
	for _, m := range walk {
		if !o.times[m.day] && m.gap == 0 || !o.fires(m) {
			continue
		}
		want := time.Unix(int64(m.at)*60, 0).UTC()
		got, err := e.Next(at, zone)
		if err != nil {
			t.Fatalf("%s in %s after %s: %v", text, zone, at, err)
		}
		if !got.Equal(want) {
			t.Fatalf("%s in %s after %s: %s, want %s", text, zone, at.In(zone), got.In(zone), want.In(zone))
		}
		if between := at.Add(time.Duration(rand.Int64N(int64(want.Sub(at))))); n%7 == 0 {
			if got, err := e.Next(between, zone); err != nil || !got.Equal(want) {
				t.Fatalf("%s in %s after %s: %s %v, want %s", text, zone, between.In(zone), got, err, want.In(zone))
			}
		}
		at, n = want, n+1
	}
	if got, err := e.Next(at, zone); err != nil && !errors.Is(err, schedule.ErrNever) || err == nil && got.Before(until) {
		t.Fatalf("%s in %s after %s: %s %v, want nothing before %s", text, zone, at, got, err, until)
	}
	return n
}

// An oracle says by the rule for clock changes whether an expression fires at a minute. It
// knows nothing of the library.
type oracle struct {
	fixed                  bool
	times                  [1440]bool // of the day, from minute and hour
	day, month, weekday    [32]bool
	everyDay, everyWeekday bool
}

func (o *oracle) fires(m minute) bool {
	if !o.fixed {
		return o.shows(m.wall)
	}
	for skipped := m.wall - int32(m.gap); skipped < m.wall; skipped++ {
		if o.shows(skipped) {
			return true
		}
	}
	return !m.seen && o.shows(m.wall)
}

func (o *oracle) shows(wall int32) bool {
	if !o.times[wall%1440] {
		return false
	}
	t := time.Unix(int64(wall)*60, 0).UTC()
	day, weekday := o.day[t.Day()], o.weekday[t.Weekday()]
	match := day && weekday
	if !o.everyDay && !o.everyWeekday {
		match = day || weekday
	}
	return match && o.month[t.Month()]
}

func read(t *testing.T, text string) *oracle {
	t.Helper()
	long := map[string]string{
		"@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
		"@hourly": "0 * * * *",
	}[text]
	if long == "" {
		long = text
	}
	parts := strings.Fields(strings.NewReplacer("?", "*", "sun", "0").Replace(long))
	o := &oracle{fixed: !strings.ContainsAny(parts[0]+parts[1], "*/"), everyDay: parts[2] == "*",
		everyWeekday: parts[4] == "*"}
	var minute, hour [60]bool
	for i, set := range []struct {
		in       []bool
		min, max int
	}{{minute[:], 0, 59}, {hour[:], 0, 23}, {o.day[:], 1, 31}, {o.month[:], 1, 12}, {o.weekday[:], 0, 6}} {
		for item := range strings.SplitSeq(parts[i], ",") {
			values, by, stepped := strings.Cut(item, "/")
			first, last, ranged := strings.Cut(values, "-")
			step, lo, hi := 1, set.min, set.max
			if stepped {
				step = atoi(t, by)
			}
			if values != "*" {
				lo = atoi(t, first)
				switch {
				case ranged:
					hi = atoi(t, last)
				case !stepped:
					hi = lo
				}
			}
			for v := lo; v <= hi; v += step {
				set.in[v] = true
			}
		}
	}
	for i := range o.times {
		o.times[i] = hour[i/60] && minute[i%60]
	}
	return o
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sortedZones() []string { return slices.Sorted(maps.Keys(zones)) }
