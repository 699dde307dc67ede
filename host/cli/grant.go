package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// grantFlags are the flags of sluice grant.
type grantFlags struct {
	runFlags
	once, continuous bool
	expires          string
}

// grantCommands are sluice grant and revoke.
type grantCommands struct{ *command }

func (c grantCommands) grant() *cobra.Command {
	f := &grantFlags{}
	cmd := &cobra.Command{
		Use: "grant CONNECTOR", Short: "Give a connection what its connector asks for",
		Long: `Stores what a connector may do for a connection: which servers it reaches, which
directories it sees, which secrets it sees itself, and within which bounds. What
is not given, it does not have; sluice inspect shows what it asks for. On a
terminal you are asked for what is missing. Later runs need no flags.

A version of the connector that asks for more does not run until that is granted:
grant it again. --scope, --single-use, --expires and --continuous replace the
bounds; without them they stay. What is given applies from the next run on.`,
		Example: `  sluice grant feed --allow-host blog.example.org
  sluice grant git --mount repo=. --expires 30d
  sluice grant mailbox --scope '{"streams":[{"name":"messages"}]}' --single-use`,
		Args: args(1, 1, "one connector"),
		RunE: func(cmd *cobra.Command, a []string) error { return c.doGrant(cmd.Context(), a[0], f) },
	}
	f.addApprovals(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.connection, "connection", "", "connection `ID` (default: the connector's name)")
	fl.BoolVar(&f.once, "single-use", false, "for one successful run")
	fl.BoolVar(&f.continuous, "continuous", false, "for any number of runs")
	fl.StringVar(&f.expires, "expires", "", "until `WHEN`: a date, a time, or a span such as 30d or 12h")
	return cmd
}

func (c grantCommands) doGrant(ctx context.Context, connector string, f *grantFlags) error {
	terms, err := f.terms(time.Now())
	if err != nil {
		return err
	}
	return c.withClient(ctx, app.Options{NoSandbox: true}, func(k *client.Client) error {
		return c.grantThrough(ctx, k, connector, f, terms)
	})
}

// grantThrough asks for what is missing, and has the host store what was given.
func (c grantCommands) grantThrough(ctx context.Context, to *client.Client, connector string, f *grantFlags,
	terms *host.GrantTerms) (err error) {
	q := app.RunRequest{Connection: store.ConnectionID(f.connection)}
	if q.Connector, err = c.runConnector(ctx, to, connector, &f.runFlags); err != nil {
		return err
	}
	known, err := knownConnection(ctx, to, connectionOf(q))
	if err != nil {
		return err
	}
	if err := c.approval().approve(ctx, to, known, &q, &f.runFlags); err != nil {
		return err
	}
	if f.declined { // granting includes accepting the version
		return &run.Refusal{Code: "binding_not_approved", Message: "you did not let this version run; nothing was granted"}
	}
	give := host.ConnectorGrant{Connector: connector, Terms: terms}
	if give.Overrides, err = overridesOf(q, &f.runFlags); err != nil {
		return err
	}
	conn, err := to.GrantConnector(ctx, give)
	if terms != nil && c.approval().confirmNarrowing(err) {
		terms.Narrow = true
		conn, err = to.GrantConnector(ctx, give)
	}
	if err != nil {
		return err
	}
	return c.approval().showConnection(conn, q.Connector.Manifest)
}

// terms returns the bounds that the flags give, or nil if there is none.
func (f *grantFlags) terms(now time.Time) (*host.GrantTerms, error) {
	if f.scope == "" && !f.once && !f.continuous && f.expires == "" {
		return nil, nil
	}
	if f.once && f.continuous {
		return nil, usagef("--single-use and --continuous contradict each other")
	}
	t := &host.GrantTerms{Scope: json.RawMessage("null"), AccessMode: "continuous", Narrow: f.narrow}
	if f.once {
		t.AccessMode = "single_use"
	}
	scope, err := valueOrFile("--scope", f.scope)
	if err != nil {
		return nil, err
	}
	if scope != "" {
		if _, err := strictjson.Parse([]byte(scope), strictjson.ParseOptions{}); err != nil {
			return nil, usagef("--scope: want JSON, or @FILE with JSON: %w", err)
		}
		t.Scope = json.RawMessage(scope)
	}
	if f.expires != "" {
		at, err := parseWhen(f.expires, now)
		if err != nil {
			return nil, usagef("--expires %s: %w", abi.Clean(f.expires), err)
		}
		t.ExpiresAt = &at
	}
	return t, nil
}

// parseWhen reads a time, the end of a day, or a span from now on.
func parseWhen(text string, now time.Time) (time.Time, error) {
	if at, ok := abi.Instant(text); ok {
		return at, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day.AddDate(0, 0, 1).UTC(), nil
	}
	if n, ok := parseDays(text); ok {
		return now.AddDate(0, 0, n).UTC(), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d).UTC(), nil
	}
	return time.Time{}, errors.New("want a date (2027-01-31), a time (2027-01-31T12:00:00Z) or a span (30d, 12h)")
}

// parseDays reads 30d.
func parseDays(text string) (int, bool) {
	days, ok := strings.CutSuffix(text, "d")
	n, err := strconv.ParseUint(days, 10, 16)
	return int(n), ok && err == nil && n > 0
}

// showGrant prints what a connection has, and what its connector asks for
// beyond that.
func (c approval) showGrant(conn host.Connection, m *abi.Manifest) {
	s := c.screenOut()
	s.line(abi.Clean(fmt.Sprintf("%s may, for connection %s:", displayName(m), conn.ConnectionID)))
	for _, line := range granted(conn, m) {
		s.line("  " + abi.Clean(line))
	}
	var missing []request
	for _, r := range requests(m, app.ApprovedBy(conn.Bindings)) {
		if r.Flag != "" {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return
	}
	s.line("It asks for more, and does not have it:")
	for _, r := range missing {
		s.line(abi.Clean(fmt.Sprintf("  %s%s → %s", r.Wants, requiredText[r.Required], r.Granted)))
	}
}

// granted returns what a connection has, in plain words.
func granted(conn host.Connection, m *abi.Manifest) []string {
	var names []string
	for _, s := range m.Streams {
		names = append(names, s.Name)
	}
	lines := []string{"collect everything it declares: " + strings.Join(names, ", ")}
	if scope := scopeOf(conn); len(scope) > 0 {
		lines[0] = "collect within this scope: " + string(strictjson.AppendCompact(nil, scope))
	}
	switch g := conn.Grant; {
	case g == nil: // nobody approved anything yet
		lines = []string{"do nothing: the grant is invalid"}
	case g.Status != "active":
		lines = []string{"do nothing: the grant is " + abi.Clean(g.Status)}
	default:
		if g.AccessMode == "single_use" {
			lines = append(lines, "succeed once")
		}
		if g.ExpiresAt != nil {
			lines = append(lines, "do so until "+g.ExpiresAt.Local().Format("2006-01-02 15:04 MST"))
		}
	}
	lines = append(lines, app.Kinds.Granted(m, app.ApprovedBy(conn.Bindings))...)
	for _, name := range sortedNames(conn.Bindings.Destinations) {
		for _, d := range conn.Bindings.Destinations[name] {
			lines = append(lines, "have the secret "+name+" sent to "+d.Origin+d.PathPrefix)
		}
	}
	for _, name := range conn.Bindings.PlainAcknowledged {
		lines = append(lines, "see the secret "+name+" itself")
	}
	return lines
}

func (c grantCommands) revoke() *cobra.Command {
	var plain []string
	var taken bindingFlags
	cmd := &cobra.Command{
		Use: "revoke CONNECTION", Short: "Take back what a connection was given",
		Long: `Takes back everything a connection was given, or with flags only what they name,
and ends its run if it has one. What it collected stays, and so do its cursors
and stored secrets. sluice grant gives it anew.`,
		Example: "  sluice revoke mailbox\n  sluice revoke feed --host blog.example.org",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			id := store.ConnectionID(a[0])
			of := taken.all()
			if len(of)+len(plain) == 0 {
				return c.revokeAll(cmd.Context(), id)
			}
			return c.withStoredData(cmd.Context(), func(src *client.Client) error {
				conn, err := findConnection(cmd.Context(), src, a[0])
				if err != nil {
					return err
				}
				conn, err = c.revokeBindings(cmd.Context(), src, conn, of, plain)
				if err == nil {
					c.printRevoked(conn)
				}
				return err
			})
		},
	}
	fl := cmd.Flags()
	taken.add(cmd, func(f binding.Flag) (name, usage string) { return f.Take, f.TakeUsage })
	fl.StringArrayVar(&plain, "plain", nil, "only the sight of the secret `NAME`; repeatable")
	return cmd
}

// revokeBindings replaces the bindings of a connection by what is left of them without what is
// named of each, and without the sight of secrets.
func (c grantCommands) revokeBindings(ctx context.Context, k *client.Client, conn host.Connection,
	of map[string][]string, plain []string) (host.Connection, error) {
	id := store.ConnectionID(conn.ConnectionID)
	left := store.Connection{Approved: app.ApprovedBy(conn.Bindings)}
	missing := app.Kinds.Withdraw(&left.Approved, of)
	b := host.Bindings{Interactive: conn.Bindings.Interactive, Destinations: conn.Bindings.Destinations}
	var gone []string
	b.PlainAcknowledged, gone = binding.Without(conn.Bindings.PlainAcknowledged, plain)
	if missing = append(missing, gone...); len(missing) > 0 {
		return conn, fmt.Errorf("%w for connection %s: %s", app.ErrNotApproved, id, abi.Clean(strings.Join(missing, ", ")))
	}
	app.Kinds.Show(left, nil, &b)
	if _, err := k.ApproveBindings(ctx, id, b); err != nil {
		return conn, err
	}
	return k.Connection(ctx, id)
}

// revokeAll revokes a grant also while another process, perhaps a run of that
// connection, has the store.
func (c grantCommands) revokeAll(ctx context.Context, id store.ConnectionID) error {
	var conn host.Connection
	err := c.withStoredData(ctx, func(src *client.Client) (err error) {
		if conn, err = findConnection(ctx, src, string(id)); err != nil {
			return err
		}
		if err := src.RevokeGrant(ctx, id, ""); err != nil {
			return err
		}
		conn, err = src.Connection(ctx, id)
		return err
	})
	var busy *store.BusyError
	if errors.As(err, &busy) {
		return c.queueRevocation(ctx, id, busy)
	}
	if err == nil {
		c.printRevoked(conn)
	}
	return err
}

// queueRevocation leaves a revocation to the process that has the store.
func (c grantCommands) queueRevocation(ctx context.Context, id store.ConnectionID, busy error) error {
	dir, err := app.DataDir(c.store)
	if err != nil {
		return err
	}
	taken, err := app.LeaveRevocation(dir, id)
	if err != nil {
		return usage{err}
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; {
		done, err := taken()
		if errors.Is(err, store.ErrNotFound) {
			return missingf("connection_not_found", "no connection %q; sluice connections lists them", string(id))
		}
		if err != nil {
			return err
		}
		if done {
			break
		}
		if time.Now().After(deadline) {
			c.warnf("%v.", busy)
			c.warnf("The grant of %s is revoked before anything is done with it again.", id)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
	c.warnf("Revoked the grant of %s; its run ends.", id)
	return nil
}

func (c grantCommands) printRevoked(conn host.Connection) {
	if conn.Grant != nil && conn.Grant.Status == "revoked" {
		c.warnf("Revoked the grant of %s. What it collected stays, and so do its stored secrets, if it has any: sluice secret list %s", conn.ConnectionID, conn.ConnectionID)
		return
	}
	c.warnf("Taken back. Connection %s keeps the rest of what it was given.", conn.ConnectionID)
}
