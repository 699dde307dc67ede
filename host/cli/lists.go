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
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// listCommands are sluice connectors, connections, runs and uninstall.
type listCommands struct{ *command }

func (c listCommands) connectors() *cobra.Command {
	var lock bool
	cmd := &cobra.Command{
		Use: "connectors", Short: "List the installed connectors",
		Long: `Lists the installed connectors. With --json: one array. With --lock: what exactly
is installed and what it was granted, as a JSON file to keep and compare.`,
		Example: "  sluice connectors\n  sluice connectors --lock > connectors.lock",
		Args:    args(0, 0, "no arguments"),
		RunE: c.stored(func(ctx context.Context, src *client.Client, _ []string) error {
			if lock {
				return c.lockConnectors(ctx, src)
			}
			return c.listConnectors(ctx, src)
		}),
	}
	cmd.Flags().BoolVar(&lock, "lock", false, "print connectors.lock")
	return cmd
}

// connectorLine is a connector without its manifest.
type connectorLine struct {
	ID          string        `json:"connector_id"`
	Name        string        `json:"connector_name"`
	Version     string        `json:"version"`
	DisplayName string        `json:"display_name"`
	Digest      string        `json:"digest"`
	Transport   string        `json:"transport"`
	Bundled     bool          `json:"bundled"`
	InstalledAt string        `json:"installed_at"`
	Signature   string        `json:"signature"` // verified or unsigned
	Signer      *store.Signer `json:"signer"`
}

func lineOfConnector(k host.Connector) connectorLine {
	sig := signatureOf(signerOf(k))
	return connectorLine{k.ConnectorID, k.Name, k.Version, k.DisplayName, k.ModuleDigest, transportOf(k),
		k.Source.Type == "bundled", store.Time(k.InstalledAt), sig.Status, sig.Signer}
}

// transportOf returns how a connector speaks: abi or stdio.
func transportOf(k host.Connector) string {
	if k.ABI.Family == "stdio" {
		return "stdio"
	}
	return "abi"
}

func (c listCommands) listConnectors(ctx context.Context, src *client.Client) error {
	all, err := src.Connectors(ctx)
	if err != nil {
		return fmt.Errorf("list connectors: %w", err)
	}
	lines := []connectorLine{}
	var rows [][]string
	for _, k := range all {
		lines = append(lines, lineOfConnector(k))
		signed := "unsigned"
		if s := signerOf(k); s != nil {
			signed = s.KeyID
		}
		rows = append(rows, []string{k.Name, k.Version, transportOf(k), k.ModuleDigest, c.timeText(k.InstalledAt),
			signed, k.DisplayName})
	}
	if c.json {
		return printJSON(c.out, lines)
	}
	if len(rows) == 0 {
		c.warnf("No connector is installed; sluice install FILE installs one.")
	}
	return c.table([]string{"name", "version", "transport", "digest", "installed", "signed by", "title"}, rows)
}

func (c listCommands) connections() *cobra.Command {
	cmd := &cobra.Command{
		Use: "connections", Short: "List the connections, or delete one",
		Long:    "Lists the connections: each is one account or source that a connector collects from.\nWith --json: one array.",
		Example: "  sluice connections",
		Args:    args(0, 0, "no arguments"),
		RunE: c.stored(func(ctx context.Context, src *client.Client, _ []string) error {
			return c.listConnections(ctx, src)
		}),
	}
	cmd.AddCommand(c.deleteConnection())
	return cmd
}

func (c listCommands) deleteConnection() *cobra.Command {
	var erase, yes bool
	cmd := &cobra.Command{
		Use: "delete CONNECTION", Short: "Delete a connection",
		Long: `Deletes a connection and its schedule. What it collected stays, unless --erase says
that records, cursors and secrets go too; that cannot be undone, and is asked about
unless --yes is given. Timelines of its runs stay.`,
		Example: "  sluice connections delete feed\n  sluice connections delete mailbox --erase",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx := cmd.Context()
			return c.withStoredData(ctx, func(src *client.Client) error {
				conn, err := findConnection(ctx, src, a[0])
				if err != nil {
					return err
				}
				if erase && !yes && !c.confirm(fmt.Sprintf("Erase connection %s with everything it collected? [yes/no] ",
					conn.ConnectionID)) {
					return usagef("nothing was erased; --yes erases without asking")
				}
				if err := src.DeleteConnection(ctx, store.ConnectionID(conn.ConnectionID), erase); err != nil {
					return err
				}
				c.warnf("Deleted connection %s.", conn.ConnectionID)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&erase, "erase", false, "records, cursors and secrets too")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --erase: do not ask")
	return cmd
}

// connectionLine is a connection as a list shows it.
type connectionLine struct {
	ID          string         `json:"connection_id"`
	ConnectorID string         `json:"connector_id"`
	DisplayName string         `json:"display_name,omitempty"`
	Enabled     bool           `json:"enabled"`
	Grant       *store.Grant   `json:"grant"`
	Approved    store.Approved `json:"approved_bindings"`
	Records     uint64         `json:"records"`
	LastRun     *runLine       `json:"last_run"`
	CreatedAt   string         `json:"created_at"`
}

func (c listCommands) listConnections(ctx context.Context, src *client.Client) error {
	all, err := src.Connections(ctx)
	if err != nil {
		return err
	}
	named, err := src.Connectors(ctx)
	if err != nil {
		return fmt.Errorf("list connectors: %w", err)
	}
	lines := []connectionLine{}
	var rows [][]string
	for _, k := range all {
		l := connectionLine{ID: k.ConnectionID, ConnectorID: k.ConnectorID,
			DisplayName: connectorTitle(k, named), Enabled: k.Enabled,
			Grant: grantOf(k), Approved: app.ApprovedBy(k.Bindings), CreatedAt: store.Time(k.CreatedAt)}
		id := store.ConnectionID(k.ConnectionID)
		streams, err := src.Streams(ctx, id)
		if err != nil {
			return fmt.Errorf("list streams of %s: %w", id, err)
		}
		for _, s := range streams {
			l.Records += s.Live
		}
		state, last := "", ""
		err = src.Runs(ctx, id, func(r timeline.Snapshot) (bool, error) {
			l.LastRun = lineOfRun(r)
			state, last = l.LastRun.statusText(), c.timeText(timeOf(r.StartedAt))
			return false, nil
		})
		if err != nil {
			return err
		}
		lines = append(lines, l)
		rows = append(rows, []string{k.ConnectionID, k.ConnectorID, fmt.Sprint(l.Records), state, last,
			c.grantText(l.Grant), onOff(k.Enabled)})
	}
	return c.printList(lines, []string{"connection", "connector", "records", "last run", "at", "grant", "enabled"}, rows)
}

// connectorTitle returns what people call a connection.
func connectorTitle(k host.Connection, installed []host.Connector) string {
	if k.DisplayName != "" {
		return k.DisplayName
	}
	for _, n := range installed {
		if n.ConnectorID == k.ConnectorID && k.ConnectionID == n.Name && n.DisplayName != "" {
			return n.DisplayName
		}
	}
	return k.ConnectionID
}

// ownGrant is how the API names a grant that was given by itself, without a name.
const ownGrant = "gra_own"

// grantOf returns a grant as a list shows it: nil for one without bounds that has no name, and
// one that is not valid where nobody approved anything yet.
func grantOf(k host.Connection) *store.Grant {
	g := k.Grant
	if g == nil {
		return &store.Grant{AccessMode: "continuous", Status: "invalid", ApprovedBy: "owner", ApprovedAt: k.CreatedAt}
	}
	out := &store.Grant{AccessMode: g.AccessMode, Scope: scopeOf(k), ExpiresAt: g.ExpiresAt, Status: g.Status,
		Ref: g.GrantID, ApprovedBy: g.ApprovedBy, ApprovedAt: g.ApprovedAt}
	if out.Ref != ownGrant {
		return out
	}
	if out.Ref = ""; g.Status == "active" && g.AccessMode == "continuous" && g.ExpiresAt == nil && out.Scope == nil {
		return nil
	}
	return out
}

// scopeOf returns the scope of a connection's grant, or nil if there is none.
func scopeOf(k host.Connection) json.RawMessage {
	if k.Grant == nil || string(k.Grant.Scope) == "null" {
		return nil
	}
	return k.Grant.Scope
}

// grantText says in a word how a grant stands.
func (c listCommands) grantText(g *store.Grant) string {
	switch code := g.Fault(time.Now()); {
	case code != "":
		return strings.TrimPrefix(code, "grant_")
	case g == nil:
		return "open"
	case g.AccessMode == "single_use":
		return "one run"
	case g.ExpiresAt != nil:
		return "until " + c.timeText(*g.ExpiresAt)
	}
	return "open"
}

func onOff(enabled bool) string {
	if enabled {
		return "yes"
	}
	return "no"
}

func (c listCommands) runs() *cobra.Command {
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
			return c.withStoredData(cmd.Context(), func(src *client.Client) error {
				connection := ""
				if len(a) == 1 {
					connection = a[0]
				}
				return c.listRuns(cmd.Context(), src, connection, limit)
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
	Outcome      string             `json:"outcome,omitempty"`
	Reason       *string            `json:"terminal_reason"`
	Phase        string             `json:"phase,omitempty"`
	HostBound    string             `json:"host_bound,omitempty"`
	StartedAt    string             `json:"started_at"`
	FinishedAt   *string            `json:"finished_at"`
	TriggerKind  string             `json:"trigger_kind"`
	Attempt      int                `json:"attempt"`
	Records      int64              `json:"records_flushed"`
}

// statusText returns the status, or that a success left data out.
func (l *runLine) statusText() string {
	if l.Outcome == run.OutcomePartial {
		return l.Outcome
	}
	return l.Status
}

func lineOfRun(r timeline.Snapshot) *runLine {
	x := r.Sluice
	l := &runLine{ID: r.RunID, ConnectionID: x.ConnectionID, ConnectorID: x.ConnectorID,
		Digest: x.ModuleDigest, Status: "active",
		StartedAt: r.StartedAt, TriggerKind: x.TriggerKind, Attempt: x.Attempt, HostBound: x.HostBound}
	if r.Metrics != nil {
		l.Records = r.Metrics.RecordsFlushed
	}
	if !r.Status.Terminal() {
		l.Phase = text(x.Phase)
		return l
	}
	l.Status, l.Outcome = x.Result, x.Outcome
	if r.CompletedAt != "" {
		l.FinishedAt = &r.CompletedAt
	}
	if x.TerminalReason != "" {
		l.Reason = &x.TerminalReason
	}
	return l
}

// timeOf returns a time that the host told; the zero Time for none.
func timeOf(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

func (c listCommands) listRuns(ctx context.Context, src *client.Client, connection string, limit int) error {
	if connection != "" {
		if _, err := findConnection(ctx, src, connection); err != nil {
			return err
		}
	}
	lines := []*runLine{}
	var rows [][]string
	err := src.Runs(ctx, store.ConnectionID(connection), func(r timeline.Snapshot) (bool, error) {
		l := lineOfRun(r)
		lines = append(lines, l)
		rows = append(rows, []string{string(l.ID), string(l.ConnectionID), l.statusText(), fmt.Sprint(l.Records),
			c.timeText(timeOf(l.StartedAt)), l.durationText(), text(l.Reason)})
		return len(lines) < limit, nil
	})
	if err != nil {
		return err
	}
	return c.printList(lines, []string{"run", "connection", "status", "records", "started", "took", "reason"}, rows)
}

// durationText returns how long a run took, between the moments as the API tells them.
func (l *runLine) durationText() string {
	if l.FinishedAt == nil {
		return ""
	}
	return clock(timeOf(*l.FinishedAt).Sub(timeOf(l.StartedAt)))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (c listCommands) uninstall() *cobra.Command {
	return &cobra.Command{
		Use: "uninstall CONNECTOR", Short: "Take a connector off the list",
		Long:    "Takes an installed connector off the list. One that connections use is refused:\ndelete them first. Records and runs stay.",
		Example: "  sluice uninstall git",
		Args:    args(1, 1, "one connector"),
		RunE: c.stored(func(ctx context.Context, src *client.Client, a []string) error {
			if err := src.UninstallConnector(ctx, a[0], ""); errors.Is(err, store.ErrNotFound) {
				return usagef("no connector %q is installed; sluice connectors lists them", abi.Clean(a[0]))
			} else if err != nil {
				return err
			}
			c.warnf("%s is no longer installed; what it collected stays.", abi.Clean(a[0]))
			return nil
		}),
	}
}
