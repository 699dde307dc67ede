package dashboard

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/web"
)

// scheduleWords describes when a schedule runs.
func scheduleWords(s *host.Schedule) string {
	if s == nil {
		return "Runs only when you start it."
	}
	if s.IntervalSeconds > 0 {
		return "Runs every " + every(s.IntervalSeconds) + "."
	}
	zone := s.Timezone
	if zone == "" {
		zone = "UTC"
	}
	return cronWords(s.Cron) + ", in the time zone " + zone + "."
}

// every returns an interval in the largest unit that divides it.
func every(seconds int64) string {
	for _, u := range []struct {
		n    int64
		word string
	}{{86400, "day"}, {3600, "hour"}, {60, "minute"}} {
		if seconds%u.n == 0 {
			if seconds == u.n {
				return u.word
			}
			return plural(seconds/u.n, u.word)
		}
	}
	return plural(seconds, "second")
}

// intervalCount and intervalUnit return an interval as the form has it.
func intervalCount(s *host.Schedule) string {
	if s == nil || s.IntervalSeconds == 0 {
		return ""
	}
	return strconv.FormatInt(s.IntervalSeconds/units[intervalUnit(s)], 10)
}

func intervalUnit(s *host.Schedule) string {
	if s == nil || s.IntervalSeconds == 0 {
		return "hours"
	}
	for _, word := range []string{"days", "hours", "minutes"} {
		if s.IntervalSeconds%units[word] == 0 {
			return word
		}
	}
	return "seconds"
}

var weekdays = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// cronWords describes common cron expressions, and shows others as they are.
func cronWords(cron string) string {
	f := strings.Fields(cron)
	other := "Runs by the cron expression " + cron
	if len(f) != 5 || f[3] != "*" {
		return other
	}
	minute, err := strconv.Atoi(f[0])
	if err != nil {
		return other
	}
	if f[1] == "*" && f[2] == "*" && f[4] == "*" {
		return "Runs every hour, " + plural(int64(minute), "minute") + " past"
	}
	hour, err := strconv.Atoi(f[1])
	if err != nil {
		return other
	}
	at := " at " + pad(hour) + ":" + pad(minute)
	day, dayErr := strconv.Atoi(f[4])
	switch {
	case f[2] == "*" && f[4] == "*":
		return "Runs every day" + at
	case f[2] == "*" && dayErr == nil && day >= 0 && day < len(weekdays):
		return "Runs every " + weekdays[day] + at
	case f[2] == "*" && f[4] == "1-5":
		return "Runs Monday to Friday" + at
	case f[2] == "1" && f[4] == "*":
		return "Runs on the first of every month" + at
	}
	return other
}

func pad(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// mostEvery is a year in seconds.
const mostEvery = 366 * 86400

// units are the form's units of an interval, in seconds.
var units = map[string]int64{"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}

// scheduleUI serves the list of schedules, and a connection page's changes to its own.
type scheduleUI struct {
	*frame
	schedules   host.Schedules
	connections host.Connections
}

func (u *scheduleUI) routes() []web.Route {
	one := "/ui/connections/:connectionId/schedule"
	return append(renewed(u.frame, "/ui/schedules",
		content{Title: "Schedules", Nav: "schedules", Live: "/ui/live/schedules"}, u.lookSchedules, "schedules"),
		action(one, u.putSchedule),
		action(one+"/pause", button(connectionOf, unshown(u.schedules.PauseSchedule))),
		action(one+"/resume", button(connectionOf, unshown(u.schedules.ResumeSchedule))),
		action(one+"/delete", button(connectionOf, u.schedules.DeleteSchedule)),
	)
}

func (u *scheduleUI) putSchedule(c *fiber.Ctx) error {
	id, f, err := connectionAndForm(c)
	if err != nil {
		return err
	}
	d := host.ScheduleDefinition{Timezone: f.text("timezone", 64)}
	switch f.raw("kind") {
	case "interval":
		n, unit := f.number("every", 0, 1, mostEvery), units[f.raw("unit")]
		if n == 0 {
			f.fail("every", "a number")
		}
		if unit == 0 {
			f.fail("unit", "seconds, minutes, hours or days")
		}
		seconds := n * unit
		d.IntervalSeconds, d.Timezone = &seconds, ""
	case "cron":
		if d.Cron = f.text("cron", 256); d.Cron == "" {
			f.fail("cron", "filled in, such as 0 7 * * *")
		}
	default:
		f.fail("kind", "interval or cron")
	}
	on, catchUp := !f.on("off"), f.on("catchUp")
	d.Enabled, d.CatchUp = &on, &catchUp
	if f.raw("jitter") != "" {
		jitter := f.number("jitter", 0, 0, 86400)
		d.JitterSeconds = &jitter
	}
	if f.raw("retries") != "" {
		retries := f.number("retries", 0, 0, 100)
		d.MaxRetries = &retries
	}
	if err := f.err(); err != nil {
		return err
	}
	if _, _, err := u.schedules.PutSchedule(web.Context(c), id, d, nil); err != nil {
		return err
	}
	return reload(c, nil)
}

func (u *scheduleUI) lookSchedules(ctx context.Context) ([]host.Connection, error) {
	all, err := u.connections.Connections(ctx)
	slices.SortFunc(all, byName)
	return all, err
}
