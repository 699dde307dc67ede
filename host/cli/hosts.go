package cli

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
)

// hostCommands are sluice hosts and drain.
type hostCommands struct{ *command }

func (c hostCommands) hosts() *cobra.Command {
	return &cobra.Command{
		Use: "hosts", Short: "List the hosts that share the store",
		Long: `Lists the hosts that have the store of --store postgres://… open, with what they do
at the moment. A host that was not heard of for the time of its lease is none any
more, and others have ended its runs. docs/scaling.md has the rest.`,
		Example: "  sluice hosts\n  sluice hosts --url https://sluice.example --key-file key",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.through(cmd.Context(), app.Options{NoSandbox: true}, func(k *client.Client) error { return c.list(cmd.Context(), k) })
		},
	}
}

func (c hostCommands) list(ctx context.Context, k *client.Client) error {
	all, err := k.Hosts(ctx)
	if err != nil {
		return err
	}
	lost, err := k.LostHosts(ctx)
	var old *client.Error
	if errors.As(err, &old) && old.Status == http.StatusNotFound { // a host of a version before
		err = nil
	}
	if err != nil {
		return err
	}
	for _, m := range lost {
		c.warnf("%s on %s was lost %s with %d active runs, which were ended; look at its log, and start it again.", m.HostID, m.Name, c.when(m.SeenAt), m.Runs)
	}
	if c.json {
		return printJSON(c.out, all)
	}
	var rows [][]string
	for _, m := range all {
		rows = append(rows, []string{m.HostID, m.Name, m.Version, strconv.Itoa(m.Runs) + " of " + strconv.Itoa(m.Capacity), strings.Join(m.Labels, " "), m.URL, c.when(m.SeenAt), doing(m)})
	}
	return c.table([]string{"host", "machine", "version", "runs", "has", "at", "seen", "state"}, rows)
}

// doing says in words what a host does beside runs.
func doing(m host.Member) string {
	var words []string
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
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.through(cmd.Context(), app.Options{NoSandbox: true}, func(k *client.Client) error {
				m, err := k.DrainHost(cmd.Context(), given[0], !off)
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
			})
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "let it start runs again")
	return cmd
}
