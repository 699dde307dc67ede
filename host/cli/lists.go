package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

func (c *command) connectors() *cobra.Command {
	var lock bool
	cmd := &cobra.Command{
		Use: "connectors", Short: "List the installed connectors",
		Long: `Lists the installed connectors. With --json: one array. With --lock: what exactly
is installed and what it was granted, as a JSON file to keep and compare.`,
		Example: "  sluice connectors\n  sluice connectors --lock > connectors.lock",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := c.listConnectors
			if lock {
				list = c.lockConnectors
			}
			return c.reading(cmd.Context(), func(h *host.Host) error { return list(cmd.Context(), h) })
		},
	}
	cmd.Flags().BoolVar(&lock, "lock", false, "print connectors.lock")
	return cmd
}

// connectorLine is a connector without its manifest.
type connectorLine struct {
	ID          store.ConnectorID `json:"connector_id"`
	Name        string            `json:"connector_name"`
	Version     string            `json:"version"`
	DisplayName string            `json:"display_name"`
	Digest      store.Digest      `json:"digest"`
	Transport   string            `json:"transport"`
	Bundled     bool              `json:"bundled"`
	InstalledAt string            `json:"installed_at"`
	Signature   string            `json:"signature"` // verified or unsigned
	Signer      *store.Signer     `json:"signer"`
}

func lineOfConnector(k store.Connector) connectorLine {
	return connectorLine{k.ID, k.Name, k.Version, k.DisplayName, k.Digest, k.Transport, k.Bundled, store.Time(k.InstalledAt), signatureOf(k).Status, k.Signer}
}

func (c *command) listConnectors(ctx context.Context, h *host.Host) error {
	all, err := h.Store.Connectors(ctx)
	if err != nil {
		return fmt.Errorf("list connectors: %w", err)
	}
	lines := []connectorLine{}
	var rows [][]string
	for _, k := range all {
		lines = append(lines, lineOfConnector(k))
		signed := "unsigned"
		if k.Signer != nil {
			signed = k.Signer.KeyID
		}
		rows = append(rows, []string{k.Name, k.Version, k.Transport, string(k.Digest), c.when(k.InstalledAt), signed, k.DisplayName})
	}
	if c.json {
		return printJSON(c.out, lines)
	}
	if len(rows) == 0 {
		c.warnf("No connector is installed; sluice install FILE installs one.")
	}
	return c.table([]string{"name", "version", "transport", "digest", "installed", "signed by", "title"}, rows)
}

func (c *command) connections() *cobra.Command {
	return &cobra.Command{
		Use: "connections", Short: "List the connections",
		Long:    "Lists the connections: each is one account or source that a connector collects from.\nWith --json: one array.",
		Example: "  sluice connections",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.reading(cmd.Context(), func(h *host.Host) error { return c.listConnections(cmd.Context(), h) })
		},
	}
}

// connectionLine is a connection as a list shows it.
type connectionLine struct {
	ID          store.ConnectionID `json:"connection_id"`
	ConnectorID store.ConnectorID  `json:"connector_id"`
	DisplayName string             `json:"display_name,omitempty"`
	Enabled     bool               `json:"enabled"`
	Grant       *store.Grant       `json:"grant"`
	Approved    store.Approved     `json:"approved_bindings"`
	Records     uint64             `json:"records"`
	LastRun     *runLine           `json:"last_run"`
	CreatedAt   string             `json:"created_at"`
}

func (c *command) listConnections(ctx context.Context, h *host.Host) error {
	all, err := h.Store.Connections(ctx)
	if err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	lines := []connectionLine{}
	var rows [][]string
	for _, k := range all {
		l := connectionLine{ID: k.ID, ConnectorID: k.ConnectorID, DisplayName: k.DisplayName, Enabled: k.Enabled, Grant: k.Grant, Approved: k.Approved, CreatedAt: store.Time(k.CreatedAt)}
		streams, err := h.Store.Streams(ctx, k.ID)
		if err != nil {
			return fmt.Errorf("list streams of %s: %w", k.ID, err)
		}
		for _, s := range streams {
			l.Records += s.Live
		}
		runs, err := h.Store.Runs(ctx, k.ID, "", 1)
		if err != nil {
			return fmt.Errorf("list runs of %s: %w", k.ID, err)
		}
		state, last := "", ""
		if len(runs) > 0 {
			l.LastRun = lineOfRun(runs[0])
			state, last = runs[0].Status, c.when(runs[0].StartedAt)
		}
		lines = append(lines, l)
		rows = append(rows, []string{string(k.ID), string(k.ConnectorID), fmt.Sprint(l.Records), state, last, c.grantText(k.Grant), onOff(k.Enabled)})
	}
	if c.json {
		return printJSON(c.out, lines)
	}
	return c.table([]string{"connection", "connector", "records", "last run", "at", "grant", "enabled"}, rows)
}

// grantText says in a word how a grant stands.
func (c *command) grantText(g *store.Grant) string {
	switch code := g.Fault(time.Now()); {
	case code != "":
		return strings.TrimPrefix(code, "grant_")
	case g == nil:
		return "open"
	case g.AccessMode == "single_use":
		return "one run"
	case g.ExpiresAt != nil:
		return "until " + c.when(*g.ExpiresAt)
	}
	return "open"
}

func onOff(enabled bool) string {
	if enabled {
		return "yes"
	}
	return "no"
}

func (c *command) runs() *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use: "runs [CONNECTION]", Short: "List runs, newest first",
		Long:    "Lists runs, newest first. With --json: one array.",
		Example: "  sluice runs\n  sluice runs git --limit 100 --json",
		Args:    args(0, 1, "at most one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			if limit < 1 {
				return usagef("--limit %d: want 1 or more", limit)
			}
			return c.reading(cmd.Context(), func(h *host.Host) error {
				connection := ""
				if len(a) == 1 {
					connection = a[0]
				}
				return c.listRuns(cmd.Context(), h, connection, limit)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N` runs")
	return cmd
}

// runLine is a run as a list shows it.
type runLine struct {
	ID           store.RunID        `json:"run_id"`
	ConnectionID store.ConnectionID `json:"connection_id"`
	ConnectorID  store.ConnectorID  `json:"connector_id"`
	Digest       store.Digest       `json:"connector_digest"`
	Status       string             `json:"status"`
	Reason       *string            `json:"terminal_reason"`
	Phase        string             `json:"phase,omitempty"`
	StartedAt    string             `json:"started_at"`
	FinishedAt   *string            `json:"finished_at"`
	TriggerKind  string             `json:"trigger_kind"`
	Attempt      int                `json:"attempt"`
	Records      int64              `json:"records_flushed"`
}

func lineOfRun(r store.Run) *runLine {
	l := &runLine{ID: r.ID, ConnectionID: r.ConnectionID, ConnectorID: r.ConnectorID, Digest: r.Digest, Status: r.Status, Phase: r.Phase,
		StartedAt: store.Time(r.StartedAt), TriggerKind: r.TriggerKind, Attempt: r.Attempt}
	if r.FinishedAt != nil {
		at := store.Time(*r.FinishedAt)
		l.FinishedAt = &at
	}
	var result struct {
		Reason  *string `json:"terminal_reason"`
		Records int64   `json:"records_flushed"`
	}
	if json.Unmarshal(r.Result, &result) == nil { // a run that is not over has none
		l.Reason, l.Records = result.Reason, result.Records
	}
	return l
}

func (c *command) listRuns(ctx context.Context, h *host.Host, connection string, limit int) error {
	if connection != "" {
		if _, err := findConnection(ctx, h.Store, connection); err != nil {
			return err
		}
	}
	lines := []*runLine{}
	var rows [][]string
	for before := store.RunID(""); len(lines) < limit; {
		runs, err := h.Store.Runs(ctx, store.ConnectionID(connection), before, min(page, limit-len(lines)))
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			l := lineOfRun(r)
			lines = append(lines, l)
			rows = append(rows, []string{string(r.ID), string(r.ConnectionID), l.Status, fmt.Sprint(l.Records), c.when(r.StartedAt), duration(r), text(l.Reason)})
		}
		before = runs[len(runs)-1].ID
	}
	if c.json {
		return printJSON(c.out, lines)
	}
	return c.table([]string{"run", "connection", "status", "records", "started", "took", "reason"}, rows)
}

func duration(r store.Run) string {
	if r.FinishedAt == nil {
		return ""
	}
	return clock(r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (c *command) uninstall() *cobra.Command {
	return &cobra.Command{
		Use: "uninstall CONNECTOR", Short: "Take a connector off the list",
		Long:    "Takes an installed connector off the list. Its connections, records and runs stay.",
		Example: "  sluice uninstall git",
		Args:    args(1, 1, "one connector"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.reading(cmd.Context(), func(h *host.Host) error {
				if err := h.Uninstall(cmd.Context(), a[0]); err != nil {
					return err
				}
				c.warnf("%s is no longer installed; what it collected stays.", abi.Clean(a[0]))
				return nil
			})
		},
	}
}
