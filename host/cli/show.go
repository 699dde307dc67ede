package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
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
		RunE: c.stored(func(ctx context.Context, src *client.Client, a []string) error {
			return c.doShow(ctx, src, a[0], requests)
		}),
	}
	cmd.Flags().BoolVar(&requests, "requests", false, "show the requests that it made")
	return cmd
}

func (c showCommands) doShow(ctx context.Context, src *client.Client, arg string, requests bool) error {
	r, err := findRun(ctx, src, arg)
	if err != nil {
		return err
	}
	if requests {
		return c.printRequests(ctx, src, r)
	}
	l := lineOfRun(r)
	if !r.Status.Terminal() {
		if c.json {
			return printJSON(c.out, l)
		}
		if l.HostBound != "" {
			defer c.screenOut().line("It ends when its host is stopped or updated: " + abi.Clean(l.HostBound) + ".")
		}
		return c.table([]string{"run", "connection", "status", "phase", "started"},
			[][]string{{string(l.ID), string(l.ConnectionID), l.Status, l.Phase, c.timeText(timeOf(l.StartedAt))}})
	}
	told, err := src.Result(ctx, l.ID)
	if err != nil {
		return err
	}
	if c.json {
		_, err := fmt.Fprintf(c.out, "%s\n", told)
		return err
	}
	var result run.Result
	if err := json.Unmarshal(told, &result); err != nil {
		return fmt.Errorf("read result of %s: %w", l.ID, err)
	}
	s := c.screenOut()
	s.line(string(l.ID) + " of " + string(l.ConnectionID) + ", started " + c.timeText(timeOf(l.StartedAt)) +
		", " + l.TriggerKind)
	if err := c.printResult(&finishedRun{result: &result}); err != nil {
		return err
	}
	a, err := traceOf(ctx, src, l.ID)
	if a != nil {
		s.line("  " + summaryOf(*a) + "; sluice trace " + string(l.ID) + " saves it")
	}
	if errors.Is(err, errMayNot) {
		return nil
	}
	return err
}

// traffic is what a run exchanged with one server.
type traffic struct {
	requests, refused int
	sent, received    int64
}

// printRequests prints the request log of a run, and for people the sums
// of each server.
func (c showCommands) printRequests(ctx context.Context, src *client.Client, of timeline.Snapshot) error {
	var rows [][]string
	servers := map[string]*traffic{}
	err := src.Requests(ctx, of.RunID, func(q host.Request) (bool, error) {
		r := requestOf(of, q)
		if c.json {
			return true, printJSON(c.out, r)
		}
		rows = append(rows, requestRow(c.command, r))
		t := servers[r.Origin]
		if t == nil {
			t = &traffic{}
			servers[r.Origin] = t
		}
		t.add(r)
		return true, nil
	})
	if err != nil || c.json {
		return err
	}
	if len(rows) == 0 {
		c.warnf("No request of %s is logged; the log keeps the newest 128 MiB.", of.RunID)
		return nil
	}
	if err := c.table([]string{"at", "method", "origin", "path", "status", "sent", "received", "took", "family"},
		rows); err != nil {
		return err
	}
	for _, origin := range slices.SortedFunc(maps.Keys(servers), cmp.Compare[string]) {
		t := servers[origin]
		c.warnf("%s: %s, %d refused or failed, %d bytes sent, %d received", origin, countOf(t.requests, "request"),
			t.refused, t.sent, t.received)
	}
	return nil
}

// requestOf returns a request of a run as the log has it.
func requestOf(of timeline.Snapshot, q host.Request) audit.Request {
	return audit.Request{At: audit.Time{Time: q.At}, Run: string(of.RunID), Connection: string(of.Sluice.ConnectionID),
		Method: q.Method, Origin: q.Origin, Path: q.Path,
		Status: q.Status, Refused: q.Refused, Sent: q.Sent, Received: q.Received, Millis: q.DurationMS, Family: q.Family}
}

func (t *traffic) add(r audit.Request) {
	t.requests++
	if r.Refused != "" {
		t.refused++
	}
	t.sent += r.Sent
	t.received += r.Received
}

func requestRow(c *command, r audit.Request) []string {
	status := r.Refused
	if status == "" {
		status = fmt.Sprint(r.Status)
	}
	return []string{c.timeText(r.At.Time), r.Method, r.Origin, r.Path, status, fmt.Sprint(r.Sent), fmt.Sprint(r.Received),
		fmt.Sprintf("%d ms", r.Millis), r.Family}
}
