package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/store"
)

// steerCommands are sluice cancel, pause and resume.
type steerCommands struct{ *command }

func (c steerCommands) cancel() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "cancel RUN", Short: "Cancel a run of the running host",
		Long:    "Cancels a run. What it stored stays; its cursors do not advance. RUN is an id, the\nbeginning of one, or last. With --json: one object.",
		Example: "  sluice cancel last\n  sluice cancel run_01J9ZK --reason 'wrong account'",
		Args:    args(1, 1, "one run"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.steer(cmd.Context(), a[0], func(ctx context.Context, k *client.Client, id store.RunID) (string, error) {
				return k.CancelRun(ctx, id, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for the timeline")
	return cmd
}

func (c steerCommands) pause() *cobra.Command {
	var reason string
	var now bool
	cmd := &cobra.Command{
		Use: "pause RUN", Short: "Pause a run of the running host",
		Long: `Pauses a run at the next point where nothing is under way, or with --immediate at
its next call. A pause costs no budget, and ends by itself after the limit pause_ms.`,
		Example: "  sluice pause last",
		Args:    args(1, 1, "one run"),
		RunE: func(cmd *cobra.Command, a []string) error {
			policy := "drain-current-node"
			if now {
				policy = "immediate"
			}
			return c.steer(cmd.Context(), a[0], func(ctx context.Context, k *client.Client, id store.RunID) (string, error) {
				return "paused", k.PauseRun(ctx, id, policy, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for the timeline")
	cmd.Flags().BoolVar(&now, "immediate", false, "at its next call")
	return cmd
}

func (c steerCommands) resume() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "resume RUN", Short: "Let a paused run go on",
		Long:    "Lets a paused run go on.",
		Example: "  sluice resume last",
		Args:    args(1, 1, "one run"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.steer(cmd.Context(), a[0], func(ctx context.Context, k *client.Client, id store.RunID) (string, error) {
				return "running", k.ResumeRun(ctx, id, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for the timeline")
	return cmd
}

// steerResult is what cancel, pause and resume print.
type steerResult struct {
	RunID  store.RunID `json:"run_id"`
	Status string      `json:"status"`
}

// steer calls do with a run of the running host and prints its status.
func (c steerCommands) steer(ctx context.Context, arg string,
	do func(context.Context, *client.Client, store.RunID) (string, error)) error {
	k, err := c.requireHost(ctx)
	if err != nil {
		return err
	}
	r, err := findRun(ctx, k, arg)
	if err != nil {
		return err
	}
	status, err := do(ctx, k, r.RunID)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, steerResult{r.RunID, status})
	}
	c.warnf("%s: %s", r.RunID, status)
	return nil
}
