package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// traffic is what a run exchanged with one server.
type traffic struct {
	requests, refused int
	sent, received    int64
}

// printRequests prints the request log of a run (S78), and for people the sums
// of each server.
func (c showCommands) printRequests(ctx context.Context, src served, id store.RunID) error {
	list, err := src.requests(ctx, id)
	if err != nil {
		return err
	}
	var rows [][]string
	servers := map[string]*traffic{}
	for r, err := range list {
		if err != nil {
			return err
		}
		if c.json {
			if err := printJSON(c.out, r); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, requestRow(c.command, r))
		t := servers[r.Origin]
		if t == nil {
			t = &traffic{}
			servers[r.Origin] = t
		}
		t.add(r)
	}
	if c.json {
		return nil
	}
	if len(rows) == 0 {
		c.warnf("No request of %s is logged; the log keeps the newest 128 MiB.", id)
		return nil
	}
	if err := c.table([]string{"at", "method", "origin", "path", "status", "sent", "received", "took", "family"}, rows); err != nil {
		return err
	}
	for _, origin := range slices.SortedFunc(maps.Keys(servers), cmp.Compare[string]) {
		t := servers[origin]
		c.warnf("%s: %s, %d refused or failed, %d bytes sent, %d received", origin, counted(t.requests, "request"), t.refused, t.sent, t.received)
	}
	return nil
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
	return []string{c.when(r.At.Time), r.Method, r.Origin, r.Path, status, fmt.Sprint(r.Sent), fmt.Sprint(r.Received), fmt.Sprintf("%d ms", r.Millis), r.Family}
}
