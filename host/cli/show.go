package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

func (c *command) show() *cobra.Command {
	requests := false
	cmd := &cobra.Command{
		Use: "show RUN", Short: "Show how a run ended",
		Long: `Shows a run: its result, as sluice run printed it. RUN is an id, the beginning of
one, or last. With --json: the result object, or the run record of a run that is
not over. With --requests: every request that it made or was refused, without
queries, headers and bodies; with --json one object per line.`,
		Example: "  sluice show last\n  sluice show run_01J9ZK --json\n  sluice show last --requests",
		Args:    args(1, 1, "one run"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.reading(cmd.Context(), func(h *host.Host) error { return c.doShow(cmd.Context(), h, a[0], requests) })
		},
	}
	cmd.Flags().BoolVar(&requests, "requests", false, "show the requests that it made")
	return cmd
}

func (c *command) doShow(ctx context.Context, h *host.Host, arg string, requests bool) error {
	r, err := findRun(ctx, h.Store, arg)
	if err != nil {
		return err
	}
	if requests {
		return c.printRequests(ctx, h, r.ID)
	}
	if len(r.Result) == 0 {
		if c.json {
			return printJSON(c.out, lineOfRun(r))
		}
		return c.table([]string{"run", "connection", "status", "phase", "started"},
			[][]string{{string(r.ID), string(r.ConnectionID), r.Status, r.Phase, c.when(r.StartedAt)}})
	}
	if c.json {
		_, err := fmt.Fprintf(c.out, "%s\n", r.Result)
		return err
	}
	var result run.Result
	if err := json.Unmarshal(r.Result, &result); err != nil {
		return fmt.Errorf("read result of %s: %w", r.ID, err)
	}
	s := c.screenOut()
	s.line(string(r.ID) + " of " + string(r.ConnectionID) + ", started " + c.when(r.StartedAt) + ", " + r.TriggerKind)
	return c.printResult(&finished{result: &result})
}

func (c *command) events() *cobra.Command {
	var from uint64
	cmd := &cobra.Command{
		Use: "events RUN", Short: "Print the timeline of a run",
		Long:    "Prints every event of a run in order. RUN is an id, the beginning of one, or last.\nWith --json: one event envelope per line, as stored.",
		Example: "  sluice events last\n  sluice events last --from 100 --json",
		Args:    args(1, 1, "one run"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.reading(cmd.Context(), func(h *host.Host) error { return c.doEvents(cmd.Context(), h, a[0], from) })
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "begin with the event of sequence `N`")
	return cmd
}

func (c *command) doEvents(ctx context.Context, h *host.Host, arg string, from uint64) error {
	r, err := findRun(ctx, h.Store, arg)
	if err != nil {
		return err
	}
	for {
		events, err := h.Store.Events(ctx, r.ID, from, page)
		if err != nil {
			return fmt.Errorf("read events of %s: %w", r.ID, err)
		}
		for _, e := range events {
			if err := c.printEvent(e); err != nil {
				return fmt.Errorf("print event: %w", err)
			}
			from = e.Sequence + 1
		}
		if len(events) < page {
			return nil
		}
	}
}

func (c *command) printEvent(e store.Event) error {
	if c.json {
		return printJSON(c.out, e)
	}
	_, err := fmt.Fprintf(c.out, "%5d  %s  %-28s  %s\n", e.Sequence, clockTime(c, e), e.Type, eventText(e))
	return err
}

func clockTime(c *command, e store.Event) string {
	if c.screenOut().live {
		return e.OccurredAt.Local().Format("15:04:05.000")
	}
	return store.Time(e.OccurredAt)
}

// eventText is what an event says, in one line.
func eventText(e store.Event) string {
	var d eventData
	if json.Unmarshal(e.Data, &d) != nil {
		return abi.Clean(e.Status)
	}
	records := ""
	if e.Type == "run.batch_ingested" {
		records = count(d.Accepted) + " records"
		if d.Rejected > 0 {
			records += ", " + count(d.Rejected) + " rejected"
		}
	}
	message := d.Message
	if message == "" {
		message = d.Failure
	}
	return abi.Clean(join("  ", string(e.Stream), records, d.Level, d.Reason, message))
}
