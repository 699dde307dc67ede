package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
)

// destinationCommands are sluice destination and those below it.
type destinationCommands struct{ *command }

func (c destinationCommands) destination() *cobra.Command {
	cmd := &cobra.Command{
		Use: "destination", Short: "Keep a database or files up to date with what is collected",
		Long: `A destination is a database or a directory of files with a table for each stream. The
running host feeds it a moment after each commit; without one, sluice destination sync does.
docs/data.md says what the tables look like.`,
		Example: "  sluice destination add here sqlite:mail.db\n  sluice destination sync here",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice destination add, list, show, sync, pause, resume, rotate, rebuild or remove")
		},
	}
	cmd.AddCommand(c.add(), c.list(), c.show(),
		c.one("sync", "Bring in everything now",
			"Brings in everything that there is now, also into a destination that is paused, and waits\nuntil it is there. What failed ends with code 1. With --json: one object.",
			func(ctx context.Context, k *client.Client, name string) (host.Destination, error) {
				return k.SyncDestination(ctx, name)
			}),
		c.one("pause", "Stop feeding a destination", "Stops feeding a destination until sluice destination resume.",
			func(ctx context.Context, k *client.Client, name string) (host.Destination, error) {
				return k.PauseDestination(ctx, name, true)
			}),
		c.one("resume", "Go on feeding a destination", "Goes on where it was paused; nothing is missing then.",
			func(ctx context.Context, k *client.Client, name string) (host.Destination, error) {
				return k.PauseDestination(ctx, name, false)
			}),
		c.rotate(), c.rebuild(), c.remove())
	return cmd
}

func (c destinationCommands) add() *cobra.Command {
	q := host.NewDestination{}
	var modes []string
	cmd := &cobra.Command{
		Use: "add NAME URL", Short: "Feed a new destination",
		Long: `Adds a destination and begins to feed it. URL is sqlite:FILE, postgres://…, parquet:DIR,
jsonl:DIR, csv:DIR, or webhook:https://… for a server that is sent what changes. It is
kept in the vault, and its password never printed; with - it is read from standard input.
What is sent to a server is signed with a secret, which is printed once, or with that
behind a # at the end of the URL.
With --json: one object.`,
		Example: "  sluice destination add here sqlite:mail.db --connection mailbox\n  sluice destination add all sqlite:/srv/sluice.db --mode history",
		Args:    args(2, 2, "a name and a URL"),
		RunE: func(cmd *cobra.Command, a []string) (err error) {
			q.Name = a[0]
			if q.URL, err = c.destinationURL(a[1]); err != nil {
				return err
			}
			for _, m := range modes {
				stream, mode, ok := strings.Cut(m, "=")
				if !ok {
					if q.Mode != "" {
						return usagef("--mode %s: want one mode for all streams, and STREAM=MODE for others", abi.Clean(m))
					}
					q.Mode = m
					continue
				}
				if q.StreamModes == nil {
					q.StreamModes = map[string]string{}
				}
				q.StreamModes[stream] = mode
			}
			secret := ""
			if strings.HasPrefix(q.URL, "webhook:") && !strings.Contains(q.URL, "#") {
				secret = webhook.NewSecret()
				q.URL += "#" + secret
			}
			return c.withStore(cmd.Context(), func(k *client.Client) error {
				d, err := k.AddDestination(cmd.Context(), q)
				if err != nil {
					return err
				}
				if secret != "" {
					c.warnf("What is sent is signed with %s; keep it, it is not shown again.", secret)
				}
				if !c.ownHost { // a running host feeds it
					return c.printDestination(d)
				}
				d, err = k.SyncDestination(cmd.Context(), q.Name)
				return c.printSynced(d, err)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&q.Connections, "connection", nil, "only the connection `ID`; repeatable")
	fl.StringArrayVar(&q.Streams, "stream", nil, "only the stream `STREAM` or CONNECTION/STREAM; repeatable")
	fl.StringArrayVar(&modes, "mode", nil,
		"which versions tables have, current, current+deleted or history; `MODE` or STREAM=MODE, repeatable")
	fl.BoolVar(&q.Flatten, "flatten", false, "members of objects become columns, one level deep")
	fl.BoolVar(&q.Files, "files", false, "bring the files that records hold too")
	fl.StringVar(&q.Cron, "cron", "", "feed it at these times instead of after each commit, five `FIELDS` in UTC")
	fl.BoolVar(&q.TakeOver, "take-over", false, "also if another host feeds it")
	return cmd
}

// destinationURL returns a URL whose path does not depend on where the host was started.
func (c destinationCommands) destinationURL(text string) (string, error) {
	if text == "-" {
		value, err := readValue(c.in, "URL", "standard input")
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(string(value))
	}
	for _, scheme := range []string{"sqlite:", "parquet:", "jsonl:", "csv:"} {
		path, ok := strings.CutPrefix(text, scheme)
		if !ok || path == "" || c.url != "" {
			continue
		}
		whole, err := filepath.Abs(path)
		return scheme + whole, err
	}
	return text, nil
}

func (c destinationCommands) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List destinations",
		Long:    "Lists destinations, how they stand and what failed. With --json: one array.",
		Example: "  sluice destination list", Args: args(0, 0, "no arguments"),
		RunE: c.stored(func(ctx context.Context, s *client.Client, _ []string) error {
			all, err := s.Destinations(ctx)
			if err != nil {
				return err
			}
			if c.json {
				return printJSON(c.out, all)
			}
			columns, rows := []string{"destination", "state", "behind", "synced", "url", "error"}, [][]string(nil)
			shared := slices.ContainsFunc(all, func(d host.Destination) bool { return d.HostID != "" })
			if shared {
				columns = append(columns, "fed by")
			}
			for _, d := range all {
				synced := "never"
				if d.SyncedAt != nil {
					synced = c.timeText(*d.SyncedAt)
				}
				row := []string{d.Name, d.State, strconv.FormatUint(d.Behind, 10), synced, d.URL, abi.Clean(d.Error)}
				if shared {
					row = append(row, abi.Clean(d.HostID))
				}
				rows = append(rows, row)
			}
			return c.table(columns, rows)
		}),
	}
}

func (c destinationCommands) show() *cobra.Command {
	return c.one("show", "Show a destination and its tables",
		"Shows how a destination stands, with its tables. With --json: one object.",
		func(ctx context.Context, k *client.Client, name string) (host.Destination, error) {
			return k.Destination(ctx, name)
		})
}

// one returns a command about one destination.
func (c destinationCommands) one(verb, short, long string,
	do func(context.Context, *client.Client, string) (host.Destination, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Example: "  sluice destination " + verb + " here",
		Args: args(1, 1, "the name of a destination"),
		RunE: c.stored(func(ctx context.Context, s *client.Client, a []string) error {
			d, err := do(ctx, s, a[0])
			if err != nil {
				return errNoDestination(err, a[0])
			}
			if verb == "sync" {
				return c.printSynced(d, nil)
			}
			return c.printDestination(d)
		}),
	}
}

// errNoDestination turns store.ErrNotFound into an error that names the destination.
func errNoDestination(err error, name string) error {
	if errors.Is(err, store.ErrNotFound) {
		return missingf("not_found", "there is no destination %q; sluice destination list lists them", abi.Clean(name))
	}
	return err
}

func (c destinationCommands) rotate() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "rotate NAME", Short: "Sign what a webhook is sent with another secret",
		Long: `Has batches to a server signed with another secret, which is printed once, or with that in
--file. For 24 hours they are signed with the one before too, so that the server can
switch. With --json: one object, with the secret that was made.`,
		Example: "  sluice destination rotate hook", Args: args(1, 1, "the name of a destination"),
		RunE: func(cmd *cobra.Command, a []string) error {
			made := webhook.NewSecret()
			secret := made
			if file != "" {
				value, err := valueFrom(c.in, file)
				if err != nil {
					return err
				}
				secret, made = string(value), ""
			}
			return c.withStoredData(cmd.Context(), func(s *client.Client) error {
				d, err := s.RotateDestination(cmd.Context(), a[0], secret)
				if err != nil {
					return errNoDestination(err, a[0])
				}
				if c.json {
					return printJSON(c.out, struct {
						host.Destination
						Secret string `json:"secret,omitempty"`
					}{d, made})
				}
				if d.PreviousSecretUntil != nil {
					c.warnf("Until %s what is sent is signed with the secret before too. Keep the new one: it is not shown again.",
						c.timeText(*d.PreviousSecretUntil))
				}
				if made != "" {
					_, err = fmt.Fprintf(c.out, "%s\n", made)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the secret is in `FILE`, - for standard input")
	return cmd
}

func (c destinationCommands) rebuild() *cobra.Command {
	var stream string
	cmd := &cobra.Command{
		Use: "rebuild NAME", Short: "Remove tables and bring everything in anew",
		Long: `Removes the tables of a destination, or with --stream one of them, and brings everything
in anew. Versions that only a history has are lost.`,
		Example: "  sluice destination rebuild here\n  sluice destination rebuild here --stream mailbox/messages",
		Args:    args(1, 1, "the name of a destination"), RunE: func(cmd *cobra.Command, a []string) error {
			connection, name, ok := strings.Cut(stream, "/")
			if stream != "" && (!ok || connection == "" || name == "") {
				return usagef("--stream %s: want CONNECTION/STREAM", abi.Clean(stream))
			}
			return c.withStoredData(cmd.Context(), func(s *client.Client) error {
				d, err := s.RebuildDestination(cmd.Context(), a[0], store.ConnectionID(connection), store.Stream(name))
				if err != nil {
					return errNoDestination(err, a[0])
				}
				return c.printSynced(d, nil)
			})
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "only the table of `CONNECTION/STREAM`")
	return cmd
}

func (c destinationCommands) remove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget a destination; its tables stay",
		Long: "Forgets a destination. Its tables and files stay as they are.", Example: "  sluice destination remove here",
		Args: args(1, 1, "the name of a destination"),
		RunE: c.stored(func(ctx context.Context, s *client.Client, a []string) error {
			if err := s.RemoveDestination(ctx, a[0]); err != nil {
				return errNoDestination(err, a[0])
			}
			c.warnf("Destination %s is forgotten. Its tables stay as they are.", a[0])
			return nil
		}),
	}
}

// printSynced prints a destination after a sync; a failed one makes the exit code 1.
func (c destinationCommands) printSynced(d host.Destination, err error) error {
	if err != nil {
		return err
	}
	if err := c.printDestination(d); err != nil {
		return err
	}
	if d.Error != "" {
		c.code = exitConnector
	}
	return nil
}

func (c destinationCommands) printDestination(d host.Destination) error {
	if c.json {
		return printJSON(c.out, d)
	}
	c.warnf("Destination %s, %s: %s, %d versions behind.", d.Name, abi.Clean(d.URL), d.State, d.Behind)
	if d.HostID != "" {
		c.warnf("It is fed by host %s.", abi.Clean(d.HostID))
	}
	if d.Error != "" {
		c.warnf("The last try failed: %s", abi.Clean(d.Error))
	}
	if d.NextTry != nil {
		c.warnf("The next is at %s, or now with sluice destination sync %s.", c.timeText(*d.NextTry), d.Name)
	}
	columns, rows := []string{"table", "connection", "stream", "mode", "version", "behind"}, [][]string(nil)
	blocked := slices.ContainsFunc(d.Tables, func(t host.DestinationStream) bool { return t.Error != "" })
	if blocked {
		columns = append(columns, "error")
	}
	for _, t := range d.Tables {
		row := []string{t.Table, t.ConnectionID, t.Stream, t.Mode, strconv.FormatUint(t.Version, 10),
			strconv.FormatUint(t.Behind, 10)}
		if blocked {
			row = append(row, t.Error)
		}
		rows = append(rows, row)
	}
	return c.table(columns, rows)
}
