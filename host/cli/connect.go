package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// connectCommands is sluice connect.
type connectCommands struct{ *command }

func (c connectCommands) connect() *cobra.Command {
	f := &grantFlags{}
	var name string
	var labels []string
	cmd := &cobra.Command{
		Use: "connect CONNECTOR", Short: "Make a connection: settings, secrets and what it may do",
		Long: `Makes a connection of an installed connector, with its configuration, its secrets
and what it is granted: all that its runs, by hand or by schedule, then have. On a
terminal you are asked for what is missing. With --json: the connection.`,
		Example: `  sluice connect feed --config '{"feeds": ["https://blog.example.org/feed.xml"]}' --allow-host blog.example.org
  sluice connect git --connection sluice --mount repo=/src/sluice --name 'The Sluice repository'
  sluice connect mailbox --secret token=@token.txt --yes`,
		Args: args(1, 1, "one installed connector"),
		RunE: func(cmd *cobra.Command, a []string) error { return c.doConnect(cmd.Context(), a[0], name, labels, f) },
	}
	f.addApprovals(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.connection, "connection", "", "its `ID` (default: the connector's name)")
	fl.StringVar(&name, "name", "", "what people call it")
	fl.StringArrayVar(&labels, "label", nil, "only hosts with this label run it, `NAME[=VALUE]`; repeatable")
	fl.StringVar(&f.config, "config", "", "its configuration, `JSON|@FILE`")
	fl.StringArrayVar(&f.secrets, "secret", nil, "store a secret from a file, `NAME=@FILE`; repeatable")
	fl.BoolVar(&f.once, "single-use", false, "for one successful run")
	fl.BoolVar(&f.continuous, "continuous", false, "for any number of runs")
	fl.StringVar(&f.expires, "expires", "", "until `WHEN`: a date, a time, or a span such as 30d or 12h")
	return cmd
}

func (c connectCommands) doConnect(ctx context.Context, connector, name string, labels []string, f *grantFlags) error {
	terms, err := f.terms(time.Now())
	if err != nil {
		return err
	}
	q, err := c.runRequest(&f.runFlags)
	if err != nil {
		return err
	}
	return c.withStoredData(ctx, func(src *client.Client) error {
		return c.makeConnection(ctx, src, connector, name, labels, q, terms, f)
	})
}

func (c connectCommands) makeConnection(ctx context.Context, k *client.Client, connector, name string, labels []string,
	q app.RunRequest, terms *host.GrantTerms, f *grantFlags) (err error) {
	if q.Connector, err = loaded(ctx, k, connector); err != nil {
		return err
	}
	if err := checkDeclared(q.Connector.Manifest, q.Secrets); err != nil {
		return err
	}
	// Check everything before there is a connection.
	wanted, err := c.approval().bindings(k, host.Connection{}, &q, &f.runFlags)
	if err != nil {
		return err
	}
	conn, err := k.CreateConnection(ctx,
		host.NewConnection{ConnectorName: q.Connector.Manifest.Name(), ConnectionID: f.connection, DisplayName: name,
			Settings: q.Config, Labels: labels})
	if err != nil {
		return err
	}
	id := store.ConnectionID(conn.ConnectionID)
	for _, name := range slices.Sorted(maps.Keys(q.Secrets)) {
		if err := k.SetSecret(ctx, id, name, []byte(q.Secrets[name])); err != nil {
			return fmt.Errorf("connection %s is made, but not its secret %s: %w", id, name, err)
		}
	}
	if err := c.approval().giveTo(ctx, k, id, wanted, terms); err != nil {
		return fmt.Errorf("connection %s is made, and has no grant; sluice grant gives one: %w", id, err)
	}
	if conn, err = k.Connection(ctx, id); err != nil {
		return err
	}
	if err := c.approval().showConnection(conn, q.Connector.Manifest); err != nil || c.json {
		return err
	}
	c.warnf("Connection %s is made. Run it with sluice run %s, or by itself with sluice schedule set %s --every 6h.", id,
		id, id)
	return nil
}

// showConnection prints what a connection was granted and whether it can run.
func (c approval) showConnection(conn host.Connection, m *abi.Manifest) error {
	if c.json {
		return printJSON(c.out, conn)
	}
	c.showGrant(conn, m)
	for _, code := range conn.NotReady {
		c.warnf("It cannot run yet: %s.", abi.Clean(strings.ReplaceAll(code, "_", " ")))
	}
	return nil
}

// bindings returns what a connection has, and what flags and the owner add.
func (c approval) bindings(k *client.Client, known host.Connection, q *app.RunRequest,
	f *runFlags) (host.Bindings, error) {
	have, m := known.Bindings, q.Connector.Manifest
	var err error
	if q.Approved.Destinations, err = destinations(m, f.secretsTo); err != nil {
		return have, err
	}
	if err := c.approveKinds(known, q, f, "", !k.Local()); err != nil {
		return have, err
	}
	return merged(have, q.Approved), nil
}

// withLocalHost calls do with a host that has only the files of this machine.
func (c *command) withLocalHost(do func(*app.Host) error) error {
	h, err := app.Open(context.Background(), app.Options{Store: "memory:", NoSandbox: true})
	if err != nil {
		return err
	}
	defer h.Close()
	return do(h)
}

// merged adds approvals to bindings.
func merged(b host.Bindings, more store.Approved) host.Bindings {
	var all store.Approved
	app.Kinds.Read(b, &all)
	app.Kinds.Merge(&all, more)
	app.Kinds.Show(store.Connection{Approved: all}, nil, &b)
	if len(more.Destinations) > 0 {
		b.Destinations = maps.Clone(b.Destinations)
		if b.Destinations == nil {
			b.Destinations = map[string][]abi.Destination{}
		}
		for name, to := range more.Destinations {
			b.Destinations[name] = append(slices.Clone(b.Destinations[name]), to...)
		}
	}
	for _, name := range more.Plain {
		if !slices.Contains(b.PlainAcknowledged, name) {
			b.PlainAcknowledged = append(slices.Clone(b.PlainAcknowledged), name)
		}
	}
	return b
}

// giveTo approves bindings and the grant. Without terms it keeps a usable grant and
// replaces another by one without limits.
func (c approval) giveTo(ctx context.Context, k *client.Client, id store.ConnectionID, b host.Bindings,
	terms *host.GrantTerms) error {
	if _, err := k.ApproveBindings(ctx, id, b); err != nil {
		return err
	}
	conn, err := k.Connection(ctx, id)
	if err != nil {
		return err
	}
	if terms == nil && conn.Grant != nil && conn.Grant.Status == "active" {
		return nil
	}
	q := host.GrantTerms{Scope: json.RawMessage("null"), AccessMode: "continuous"}
	if terms != nil {
		q = *terms
	}
	_, err = k.GrantConnection(ctx, id, q)
	if c.confirmNarrowing(err) {
		q.Narrow = true
		_, err = k.GrantConnection(ctx, id, q)
	}
	return err
}
