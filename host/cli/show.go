package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/run"
)

// showCommands are sluice show and trace.
type showCommands struct{ *command }

func (c showCommands) show() *cobra.Command {
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
			return c.reading(cmd.Context(), func(src served) error { return c.doShow(cmd.Context(), src, a[0], requests) })
		},
	}
	cmd.Flags().BoolVar(&requests, "requests", false, "show the requests that it made")
	return cmd
}

func (c showCommands) doShow(ctx context.Context, src served, arg string, requests bool) error {
	r, err := findRun(ctx, src, arg)
	if err != nil {
		return err
	}
	if requests {
		return c.printRequests(ctx, src, r.ID)
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
	if err := c.printResult(&finished{result: &result}); err != nil {
		return err
	}
	a, err := traceOf(ctx, src, r.ID)
	if a != nil {
		s.line("  " + summaryOf(*a) + "; sluice trace " + string(r.ID) + " saves it")
	}
	if errors.Is(err, errMayNot) {
		return nil
	}
	return err
}
