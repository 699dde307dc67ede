package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/store"
)

// scheduleCommands are sluice schedule and those below it.
type scheduleCommands struct{ *command }

func (c scheduleCommands) schedule() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedule", Short: "Let connections run by themselves",
		Long:    "A connection has at most one schedule. The running host starts its runs.",
		Example: "  sluice schedule set git --every 1h\n  sluice schedule list",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice schedule set, show, list, pause, resume, delete or history")
		},
	}
	cmd.AddCommand(c.setSchedule(), c.showSchedule(), c.listSchedules(),
		c.changeSchedule("pause", "Stop the ticks of a schedule", "A run that is going on is not touched.",
			func(ctx context.Context, k *client.Client, id store.ConnectionID) (host.Schedule, error) {
				return k.PauseSchedule(ctx, id)
			}),
		c.changeSchedule("resume", "Let a paused schedule tick again", "Ticks that were missed are not made up for.",
			func(ctx context.Context, k *client.Client, id store.ConnectionID) (host.Schedule, error) {
				return k.ResumeSchedule(ctx, id)
			}),
		c.deleteSchedule(), c.scheduleHistory())
	return cmd
}

// scheduleFlags are the flags of sluice schedule set.
type scheduleFlags struct {
	cron, every, jitter, timezone string
	catchUp, paused               bool
	retries                       int64
}

func (c scheduleCommands) setSchedule() *cobra.Command {
	f := &scheduleFlags{retries: -1}
	cmd := &cobra.Command{
		Use: "set CONNECTION", Short: "Say when a connection runs, in place of what was said before",
		Long: `Gives a connection a schedule: --cron with five fields, or --every with a span. What
could not run without somebody being asked, such as a grant for one run, is refused.
With --json: one object.`,
		Example: "  sluice schedule set git --every 1h\n  sluice schedule set mail --cron '0 7 * * 1-5' --timezone Europe/Zurich",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			d, err := f.definition()
			if err != nil {
				return err
			}
			return c.withSchedule(cmd.Context(), a[0], func(ctx context.Context, k *client.Client, id store.ConnectionID) error {
				s, _, err := k.PutSchedule(ctx, id, d, nil)
				if err != nil {
					return err
				}
				return c.printSchedules([]host.Schedule{s}, true)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.cron, "cron", "", "minute, hour, day, month and weekday, such as '0 7 * * 1-5'")
	fl.StringVar(&f.every, "every", "", "a `SPAN` such as 15m, 6h or 1d")
	fl.StringVar(&f.timezone, "timezone", "", "of --cron, such as Europe/Zurich (default: UTC)")
	fl.StringVar(&f.jitter, "jitter", "", "up to this `SPAN` later, so that not all begin at once")
	fl.BoolVar(&f.catchUp, "catch-up", false, "run once for what was missed while the host was down")
	fl.Int64Var(&f.retries, "retries", -1, "try a failed run again at most `N` times")
	fl.BoolVar(&f.paused, "paused", false, "begin paused")
	return cmd
}

// definition reads the flags.
func (f *scheduleFlags) definition() (d host.ScheduleDefinition, err error) {
	if (f.cron == "") == (f.every == "") {
		return d, usagef("sluice schedule set needs --cron or --every, one of them")
	}
	d.Cron, d.Timezone = f.cron, f.timezone
	for _, span := range []struct {
		flag, text string
		into       **int64
	}{{"--every", f.every, &d.IntervalSeconds}, {"--jitter", f.jitter, &d.JitterSeconds}} {
		if span.text == "" {
			continue
		}
		seconds, err := wholeSeconds(span.text)
		if err != nil {
			return d, usagef("%s %s: %w", span.flag, abi.Clean(span.text), err)
		}
		*span.into = &seconds
	}
	if f.paused {
		enabled := false
		d.Enabled = &enabled
	}
	if f.catchUp {
		d.CatchUp = &f.catchUp
	}
	if f.retries >= 0 {
		d.MaxRetries = &f.retries
	}
	return d, nil
}

// wholeSeconds reads 15m, 6h or 1d.
func wholeSeconds(text string) (int64, error) {
	if n, ok := parseDays(text); ok {
		return int64(n) * 24 * 3600, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return 0, fmt.Errorf("want a span such as 15m, 6h or 1d")
	}
	return int64(d / time.Second), nil
}

// withSchedule does something to the schedule of a connection.
func (c scheduleCommands) withSchedule(ctx context.Context, connection string,
	do func(context.Context, *client.Client, store.ConnectionID) error) error {
	return c.withStoredData(ctx, func(src *client.Client) error {
		conn, err := findConnection(ctx, src, connection)
		if err != nil {
			return err
		}
		err = do(ctx, src, store.ConnectionID(conn.ConnectionID))
		if errors.Is(err, store.ErrNotFound) {
			return usagef("connection %s has no schedule; sluice schedule set %s --every SPAN gives it one",
				conn.ConnectionID, conn.ConnectionID)
		}
		return err
	})
}

func (c scheduleCommands) showSchedule() *cobra.Command {
	return c.changeSchedule("show", "Show the schedule of a connection",
		"Shows when it runs next, and what keeps it from it.",
		func(ctx context.Context, k *client.Client, id store.ConnectionID) (host.Schedule, error) {
			return k.Schedule(ctx, id)
		})
}

// changeSchedule returns a command that ends with the schedule as it then is.
func (c scheduleCommands) changeSchedule(verb, short, long string,
	do func(context.Context, *client.Client, store.ConnectionID) (host.Schedule, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " CONNECTION", Short: short, Long: long + " With --json: one object.",
		Example: "  sluice schedule " + verb + " git",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.withSchedule(cmd.Context(), a[0], func(ctx context.Context, k *client.Client, id store.ConnectionID) error {
				s, err := do(ctx, k, id)
				if err != nil {
					return err
				}
				return c.printSchedules([]host.Schedule{s}, true)
			})
		},
	}
}

func (c scheduleCommands) listSchedules() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List schedules",
		Long:    "Lists schedules and when each runs next. With --json: one array.",
		Example: "  sluice schedule list",
		Args:    args(0, 0, "no arguments"),
		RunE: c.stored(func(ctx context.Context, src *client.Client, _ []string) error {
			all, err := src.Schedules(ctx)
			if err != nil {
				return err
			}
			return c.printSchedules(all, false)
		}),
	}
}

// interval is seconds in their largest whole unit, as --every takes them.
func interval(seconds int64) string {
	for _, u := range []struct {
		n    int64
		unit string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}} {
		if seconds > 0 && seconds%u.n == 0 {
			return fmt.Sprint(seconds/u.n, u.unit)
		}
	}
	return fmt.Sprint(seconds, "s")
}

func (c scheduleCommands) printSchedules(all []host.Schedule, one bool) error {
	switch {
	case c.json && one:
		return printJSON(c.out, all[0])
	case c.json:
		return printJSON(c.out, all)
	}
	var rows [][]string
	for _, s := range all {
		when := s.Cron
		if when == "" {
			when = "every " + interval(s.IntervalSeconds)
		}
		if s.Cron != "" && s.Timezone != "" {
			when += " " + s.Timezone
		}
		next := ""
		if s.NextDueAt != nil {
			next = c.timeText(*s.NextDueAt)
		}
		why := s.IneligibilityReason
		if mend := remedyCommand(why, s.ConnectionID); mend != "" {
			why += "; " + mend
		}
		if s.HumanAttentionNeeded {
			why = join(", ", why, "needs you")
		}
		why = join(", ", why, abi.Clean(s.HeldUp))
		rows = append(rows, []string{s.ConnectionID, when, s.EffectiveMode, next, s.LastErrorCode, why})
	}
	return c.table([]string{"connection", "when", "mode", "next", "last error", "held by"}, rows)
}

// remedyCommand returns the command that makes a connection ready again, "" where there is none.
func remedyCommand(reason, connection string) string {
	switch {
	case strings.HasPrefix(reason, "grant_"), reason == "binding_not_approved":
		return "sluice grant " + connection
	case strings.HasPrefix(reason, "connector_"):
		return "sluice install FILE"
	case reason == "secret_missing":
		return "sluice secret set " + connection + " NAME"
	}
	return ""
}

func (c scheduleCommands) deleteSchedule() *cobra.Command {
	return &cobra.Command{
		Use: "delete CONNECTION", Short: "Remove a schedule",
		Long:    "Removes the schedule of a connection. A run that is going on goes on; history stays.",
		Example: "  sluice schedule delete git",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.withSchedule(cmd.Context(), a[0], func(ctx context.Context, k *client.Client, id store.ConnectionID) error {
				if err := k.DeleteSchedule(ctx, id); err != nil {
					return err
				}
				c.warnf("Connection %s has no schedule any more.", id)
				return nil
			})
		},
	}
}

func (c scheduleCommands) scheduleHistory() *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use: "history CONNECTION", Short: "Show what a schedule did, newest first",
		Long:    "Shows the ticks of a schedule: the run each started, or why it started none. With\n--json: one object with the ticks and their sums.",
		Example: "  sluice schedule history git --limit 50",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			if limit < 1 || limit > 500 {
				return usagef("--limit %d: want 1 to 500", limit)
			}
			return c.withSchedule(cmd.Context(), a[0], func(ctx context.Context, k *client.Client, id store.ConnectionID) error {
				var h scheduleHistory
				var err error
				if h.Data, _, err = k.ScheduleHistory(ctx, id, "", limit); err != nil {
					return err
				}
				if h.Statistics, err = k.ScheduleStatistics(ctx, id); err != nil {
					return err
				}
				return c.printHistory(h)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N` ticks")
	return cmd
}

// scheduleHistory is what a schedule did, newest first, and its sums.
type scheduleHistory struct {
	Data       []host.Tick     `json:"data"`
	Statistics host.Statistics `json:"statistics"`
}

func (c scheduleCommands) printHistory(h scheduleHistory) error {
	if c.json {
		return printJSON(c.out, h)
	}
	var rows [][]string
	for _, t := range h.Data {
		records := ""
		if t.RecordsEmitted != nil {
			records = fmt.Sprint(*t.RecordsEmitted)
		}
		rows = append(rows, []string{c.timeText(t.StartedAt), t.TriggerKind, t.Status, t.RunID, records,
			orWord(t.Error, orWord(t.TerminalReason, t.FailureReason))})
	}
	if err := c.table([]string{"at", "by", "status", "run", "records", "reason"}, rows); err != nil {
		return err
	}
	s := h.Statistics
	c.warnf("%s: %d succeeded, %d failed, %d cancelled; %s skipped", countOf(int(s.TotalRuns), "run"), s.Succeeded,
		s.Failed, s.Cancelled, countOf(int(s.Skipped), "tick"))
	return nil
}
