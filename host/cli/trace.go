package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

func (c showCommands) trace() *cobra.Command {
	to := ""
	cmd := &cobra.Command{
		Use: "trace RUN", Short: "Save what a run did in its browser",
		Long: `Saves the browser trace of a run that was recorded with --trace or SLUICE_TRACE=1:
a zip with every action, what the page answered, and pictures. Open the index.html
in it to step through. RUN is an id, the beginning of one, or last.

The pictures show what the site showed: give the file to nobody you would not show
the account.`,
		Example: "  sluice trace last\n  sluice trace run_01J9ZK --to trace.zip",
		Args:    args(1, 1, "one run"),
		RunE: c.stored(func(ctx context.Context, src *client.Client, a []string) error {
			return c.doTrace(ctx, src, a[0], to)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "write to `FILE`; browser-trace-RUN.zip without")
	return cmd
}

func (c showCommands) doTrace(ctx context.Context, src *client.Client, arg, to string) error {
	r, err := findRun(ctx, src, arg)
	if err != nil {
		return err
	}
	a, err := traceOf(ctx, src, r.RunID)
	if err != nil {
		return err
	}
	if a == nil {
		return usagef("run %s left no browser trace, or has it no more; sluice run --trace records one", r.RunID)
	}
	if to == "" {
		to = "browser-trace-" + string(r.RunID) + ".zip"
	}
	f, err := createFile("--to", to)
	if err != nil {
		return err
	}
	if err := src.Artifact(ctx, *a, f.buffer); err != nil {
		f.abandon()
		return err
	}
	if err := f.commit(); err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, struct {
			RunID  store.RunID `json:"run_id"`
			File   string      `json:"file"`
			Size   int64       `json:"size"`
			Digest string      `json:"digest"`
		}{r.RunID, to, a.Size, a.Digest})
	}
	_, err = fmt.Fprintf(c.out, "%s: %s; open the index.html in it\n", abi.Clean(to), summaryOf(*a))
	return err
}

// traceOf returns the newest browser trace of a run, or nil if there is none. The error is errMayNot for
// a key that may not read what runs left.
func traceOf(ctx context.Context, src *client.Client, id store.RunID) (found *timeline.Artifact, err error) {
	all, err := src.Artifacts(ctx, id)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == "forbidden" {
		err = errMayNot
	}
	for _, a := range all {
		if a.ArtifactType == traceType {
			found = &a
		}
	}
	return found, err
}

func summaryOf(a timeline.Artifact) string {
	return join(", ", abi.Clean(a.Summary), bytesText(a.Size))
}

// traceType is the type of browser traces among artifacts.
const traceType = "browser-trace"

var errMayNot = errors.New("the key may not read what runs left: it lacks artifacts:read")
