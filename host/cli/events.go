package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// eventFlags are the flags of sluice events.
type eventFlags struct {
	from   uint64
	follow bool
	mode   string
}

// eventCommands is sluice events.
type eventCommands struct{ *command }

func (c eventCommands) events() *cobra.Command {
	f := &eventFlags{}
	cmd := &cobra.Command{
		Use: "events RUN", Short: "Print the timeline of a run, or follow it",
		Long: `Prints the events of a run in order. RUN is an id, the beginning of one, or last.
With --json: one event per line, as the API shows it.

--follow goes on until the run is over. --mode selects: updates are the steps of a
run, messages the text it writes, debug is everything; values, which needs
--follow, shows where the run stands after each change.`,
		Example: "  sluice events last\n  sluice events last --follow\n  sluice events last --from 100 --json",
		Args:    args(1, 1, "one run"),
		RunE:    func(cmd *cobra.Command, a []string) error { return c.doEvents(cmd.Context(), a[0], f) },
	}
	fl := cmd.Flags()
	fl.Uint64Var(&f.from, "from", 0, "begin with the event of sequence `N`")
	fl.BoolVar(&f.follow, "follow", false, "wait for more until the run is over")
	fl.StringVar(&f.mode, "mode", "debug", "updates, values, messages or debug, or some with commas")
	return cmd
}

func (c eventCommands) doEvents(ctx context.Context, arg string, f *eventFlags) error {
	modes, err := timeline.ParseModes(f.mode)
	var unknown *timeline.ModeError
	switch {
	case errors.As(err, &unknown):
		return usagef("--mode %s: want %s; values alone, the others also together", abi.Clean(f.mode),
			strings.Join(unknown.Supported, ", "))
	case err != nil:
		return err
	case modes.Has(timeline.Values) && !f.follow:
		return usagef("--mode values shows changes: it needs --follow")
	}
	return c.withStoredData(ctx, func(src *client.Client) error {
		r, err := findRun(ctx, src, arg)
		if err != nil {
			return err
		}
		if f.follow {
			return c.followEvents(ctx, src, r.RunID, f)
		}
		return src.Events(ctx, r.RunID, f.from, func(d timeline.Doc) error {
			if row, _ := timeline.Lookup(d.Type); row.Modes&modes == 0 {
				return nil
			}
			return c.printEvent(d)
		})
	})
}

// followEvents prints frames as they come.
func (c eventCommands) followEvents(ctx context.Context, k *client.Client, id store.RunID, f *eventFlags) error {
	var after *uint64
	if f.from > 0 {
		last := f.from - 1
		after = &last
	}
	return k.Follow(ctx, id, f.mode, after, func(frame client.Frame) error {
		if c.json {
			_, err := fmt.Fprintf(c.out, "%s\n", frame.Data)
			return err
		}
		switch frame.Event {
		case "state.snapshot":
			var s timeline.Snapshot
			if err := json.Unmarshal(frame.Data, &s); err != nil {
				return fmt.Errorf("read snapshot: %w", err)
			}
			return c.printSnapshot(frame.ID, s)
		case "ai.message.chunk":
			var chunk timeline.Chunk
			if err := json.Unmarshal(frame.Data, &chunk); err != nil {
				return fmt.Errorf("read message: %w", err)
			}
			_, err := fmt.Fprintln(c.out, abi.Clean(chunk.Chunk))
			return err
		}
		var d timeline.Doc
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		return c.printEvent(d)
	})
}

func (c eventCommands) printSnapshot(id string, s timeline.Snapshot) error {
	var records int64
	if s.Metrics != nil {
		records = s.Metrics.RecordsFlushed
	}
	_, err := fmt.Fprintf(c.out, "%5s  %-18s  %s\n", abi.Clean(id), s.Status, recordCount(records))
	return err
}

func (c eventCommands) printEvent(d timeline.Doc) error {
	if c.json {
		return printJSON(c.out, d)
	}
	_, err := fmt.Fprintf(c.out, "%5d  %s  %-28s  %s\n", d.Sequence, c.eventTime(d),
		abi.Clean(string(d.Type)), eventText(d))
	return err
}

func (c eventCommands) eventTime(d timeline.Doc) string {
	at, err := time.Parse(time.RFC3339Nano, d.Timestamp)
	if err == nil && c.screenOut().live {
		return at.Local().Format("15:04:05.000")
	}
	return abi.Clean(d.Timestamp)
}

// eventText returns what an event says, in one line.
func eventText(d timeline.Doc) string {
	var e struct {
		eventData
		Stream string `json:"stream"`
		Chunk  string `json:"chunk"`
	}
	if json.Unmarshal(d.Payload, &e) != nil {
		return ""
	}
	records := ""
	if d.Type == "run.batch_ingested" {
		records = count(e.Accepted) + " records"
		if e.Rejected > 0 {
			records += ", " + count(e.Rejected) + " rejected"
		}
	}
	message := e.Message
	if message == "" {
		message = e.Failure
	}
	return abi.Clean(join("  ", e.Stream, records, e.Level, e.Reason, message, e.Chunk))
}
