package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
)

// hostCommands are sluice hosts and drain.
type hostCommands struct{ *command }

func (c hostCommands) hosts() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hosts", Short: "List the hosts that share the store",
		Long: `Lists the hosts that have the store of --store postgres://… open, with what they do
at the moment. A host that was not heard of for the time of its lease is none any
more, and others have ended its runs. Those that are admitted can open the vault with
the secrets of all. docs/scaling.md has the rest.`,
		Example: "  sluice hosts\n  sluice hosts --url https://sluice.example --key-file key",
		Args:    args(0, 0, "no arguments"),
		RunE:    c.hosted(c.list),
	}
	cmd.AddCommand(c.code(), c.admit(), c.remove(), c.accept())
	return cmd
}

// hosted returns the RunE of a command that asks a host, with or without stored data.
func (c hostCommands) hosted(do func(ctx context.Context, k *client.Client, args []string) error) runE {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return c.withClient(ctx, app.Options{NoSandbox: true}, func(k *client.Client) error { return do(ctx, k, args) })
	}
}

func (c hostCommands) code() *cobra.Command {
	return &cobra.Command{
		Use: "code", Short: "Say what admits this host to the vault",
		Long: `Prints the code of this host's key, for sluice hosts admit at a host that is admitted.
The database has neither the code nor the key, so nobody who can write the database
is admitted in the place of this host, or gives it another vault. Keep it to yourself.`,
		Example: "  sluice hosts code\n  sluice hosts code | ssh a.example sluice hosts admit host_0123456789abcdef --file -",
		Args:    args(0, 0, "no arguments"),
		RunE: c.hosted(func(ctx context.Context, k *client.Client, _ []string) error {
			code, err := k.AdmissionCode(ctx)
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(c.out, map[string]string{"code": code})
			}
			_, err = fmt.Fprintln(c.out, code)
			return err
		}),
	}
}

func (c hostCommands) admit() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use: "admit HOST", Short: "Admit a host to the vault with the secrets of all",
		Long: `Lets another host open the secrets. It asks for the code that sluice hosts code prints
at that host, and refuses a host whose key in the database is not the one of the code.
The first host of a database is admitted by itself.`,
		Example: "  sluice hosts admit host_0123456789abcdef",
		Args:    args(1, 1, "the id of a host, which sluice hosts lists"),
		RunE: c.hosted(func(ctx context.Context, k *client.Client, given []string) error {
			code, err := c.askCode(ctx, given[0], from)
			if err != nil {
				return err
			}
			defer clear(code)
			if err := k.AdmitHost(ctx, given[0], string(code)); err != nil {
				return err
			}
			c.warnf("%s is admitted, and runs what needs a secret.", given[0])
			return nil
		}),
	}
	cmd.Flags().StringVar(&from, "file", "", "read the code from `FILE`, - for standard input")
	return cmd
}

// askCode reads the code of a host from the file from, or asks for it on the terminal.
func (c hostCommands) askCode(ctx context.Context, id, from string) ([]byte, error) {
	if from != "" {
		return valueFrom(c.in, from)
	}
	t, ok := c.terminal()
	if !ok {
		return nil, usagef(
			"there is no terminal to ask on; give the code that sluice hosts code prints at %s with --file FILE, or --file - for standard input", abi.Clean(id))
	}
	return t.askSecret(ctx, fmt.Sprintf("Code that sluice hosts code prints at %s: ", abi.Clean(id)))
}

func (c hostCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use: "remove HOST", Short: "Remove a host from the vault",
		Long: `Encrypts all secrets under a new key that the host does not get, so it reads nothing
that is written from now on. What it had it may have kept: change those secrets at
their services, and the password with which it reached the database.`,
		Example: "  sluice hosts remove host_0123456789abcdef",
		Args:    args(1, 1, "the id of a host that is admitted"),
		RunE: c.hosted(func(ctx context.Context, k *client.Client, given []string) error {
			if err := k.RemoveHost(ctx, given[0]); err != nil {
				return err
			}
			c.warnf("%s is removed, and all secrets are encrypted anew. It had them: change them at their services, and the password of the database.", given[0])
			return nil
		}),
	}
}

func (c hostCommands) accept() *cobra.Command {
	return &cobra.Command{
		Use: "accept", Short: "Go on with a database that was restored",
		Long: `A host refuses a vault that is older than what it has seen, since somebody may have
put it there. Where you restored the database yourself, this goes on with what it
holds. If a host was removed since that copy, admit the others again.`,
		Example: "  sluice hosts accept",
		Args:    args(0, 0, "no arguments"),
		RunE: c.hosted(func(ctx context.Context, k *client.Client, _ []string) error {
			if err := k.AcceptVault(ctx); err != nil {
				return err
			}
			c.warnf("The vault is what the database holds.")
			return nil
		}),
	}
}

func (c hostCommands) list(ctx context.Context, k *client.Client, _ []string) error {
	all, err := k.Hosts(ctx)
	if err != nil {
		return err
	}
	lost, err := k.LostHosts(ctx)
	var old *client.Error
	if errors.As(err, &old) && old.Status == http.StatusNotFound { // a host of an older version
		err = nil
	}
	if err != nil {
		return err
	}
	for _, m := range lost {
		c.warnf("%s on %s was lost %s with %d active runs, which were ended; look at its log, and start it again.", m.HostID,
			m.Name, c.timeText(m.SeenAt), m.Runs)
	}
	if c.json {
		return printJSON(c.out, all)
	}
	var rows [][]string
	for _, m := range all {
		rows = append(rows, []string{m.HostID, m.Name, m.Version, strconv.Itoa(m.Runs) + " of " + strconv.Itoa(m.Capacity),
			strings.Join(m.Labels, " "), m.URL, c.timeText(m.SeenAt), activityText(m)})
	}
	if err := c.table([]string{"host", "machine", "version", "runs", "has", "at", "seen", "state"}, rows); err != nil {
		return err
	}
	admitted, err := k.AdmittedHosts(ctx)
	if err != nil { // whoever may list hosts need not be their owner
		return nil
	}
	for _, a := range admitted {
		if !slices.ContainsFunc(all, func(m host.Member) bool { return m.HostID == a.HostID }) {
			c.warnf("%s is admitted to the vault, and not there; if it is lost, give sluice hosts remove %s.", a.HostID,
				a.HostID)
		}
	}
	return nil
}

// activityText describes a host's state other than its runs.
func activityText(m host.Member) string {
	var words []string
	if !m.Admitted {
		words = append(words, "not admitted")
	}
	if m.Draining {
		words = append(words, "draining")
	}
	if m.Leads {
		words = append(words, "leads")
	}
	if m.Self {
		words = append(words, "answers")
	}
	return strings.Join(words, ", ")
}

func (c hostCommands) drain() *cobra.Command {
	off := false
	cmd := &cobra.Command{
		Use: "drain HOST", Short: "Let a host start no more runs, before it is stopped",
		Long: `Runs that the host has go on, and whoever follows or answers them can; it starts
none, and what one host does for all another takes over. When sluice hosts shows no
runs of it, stop it. A host that is started again starts runs again.`,
		Example: "  sluice drain host_0123456789abcdef\n  sluice drain host_0123456789abcdef --off",
		Args:    args(1, 1, "the id of a host, which sluice hosts lists"),
		RunE: c.hosted(func(ctx context.Context, k *client.Client, given []string) error {
			m, err := k.DrainHost(ctx, given[0], !off)
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(c.out, m)
			}
			if off {
				c.warnf("%s starts runs again.", m.HostID)
			} else {
				c.warnf("%s starts no more runs; %d are active.", m.HostID, m.Runs)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&off, "off", false, "let it start runs again")
	return cmd
}
