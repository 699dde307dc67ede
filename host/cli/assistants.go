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
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/store"
)

// assistantCommands are sluice assistants and those below it.
type assistantCommands struct{ *command }

func (c assistantCommands) assistants() *cobra.Command {
	cmd := &cobra.Command{
		Use: "assistants", Short: "Let assistants read a part of what was collected",
		Long: `An assistant is a program of somebody else's, such as a language model, that reads records by
MCP. Its token is a grant: connections, and of each the streams, fields, resources and times
that it may see. docs/assistants.md says how to connect one, and what this does not solve.`,
		Example: "  sluice assistants add notes --connection mailbox --stream messages --expires 30d\n  sluice assistants calls notes",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice assistants add, list, show, revoke, calls, approve or deny")
		},
	}
	cmd.AddCommand(c.add(), c.list(), c.show(), c.revoke(), c.calls(), c.decide("approve", true), c.decide("deny", false))
	return cmd
}

// assistantFlags are what add is told.
type assistantFlags struct {
	connections, streams, fields, resources []string
	since, until, expires, grant            string
	run, ask                                bool
}

func (c assistantCommands) add() *cobra.Command {
	var f assistantFlags
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make an assistant; its token is shown once",
		Long: `Makes an assistant and prints its token, once: the host keeps only a hash. It sees the
connections that are named, all of their streams, or of one connection those of --stream,
with --fields, --resources, --since and --until for each of these. --grant takes the whole
grant as JSON: [{"connectionId":…,"scope":{"streams":[…]}}].
With --json: one object, the token is its member token.`,
		Example: "  sluice assistants add notes --connection mailbox --stream messages --fields subject,from --since 2026-01-01\n  sluice assistants add all --connection mailbox --connection bank --ask",
		Args:    args(1, 1, "a name"),
		RunE: func(cmd *cobra.Command, a []string) error {
			q, err := f.request(a[0])
			if err != nil {
				return err
			}
			return c.withStore(cmd.Context(), func(k *client.Client) error {
				made, err := k.AddAssistant(cmd.Context(), q)
				if err != nil {
					return err
				}
				if c.json {
					return printJSON(c.out, made)
				}
				c.warnf("Assistant %s may see %s. Keep the token: it is not shown again.", made.Name, visibleText(made))
				_, err = fmt.Fprintf(c.out, "%s\n", made.Token)
				return err
			})
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.connections, "connection", nil, "it sees the connection `ID`; repeatable")
	fl.StringArrayVar(&f.streams, "stream", nil, "of that only the stream `NAME`; repeatable")
	fl.StringSliceVar(&f.fields, "fields", nil, "of records only these fields, `NAME,…`, and the key")
	fl.StringSliceVar(&f.resources, "resources", nil, "only records of these resources, `ID,…`, such as folders")
	fl.StringVar(&f.since, "since", "", "only records from this `TIME` on")
	fl.StringVar(&f.until, "until", "", "only records before this `TIME`")
	fl.StringVar(&f.grant, "grant", "", "the whole grant as `JSON`, or @FILE")
	fl.BoolVar(&f.run, "run", false, "it may run these connections, and see what waits for you")
	fl.BoolVar(&f.ask, "ask", false, "each call waits until you say yes")
	fl.StringVar(&f.expires, "expires", "", "until `WHEN`: a date, a time, or a span such as 90d")
	return cmd
}

func (f *assistantFlags) request(name string) (q host.NewAssistant, err error) {
	q.Name, q.Run, q.Ask = name, f.run, f.ask
	narrowed := len(f.streams)+len(f.fields)+len(f.resources) > 0 || f.since != "" || f.until != ""
	switch {
	case f.grant != "" && (narrowed || len(f.connections) > 0):
		return q, usagef("--grant is the whole grant; leave the other flags out")
	case f.grant != "":
		text, err := valueOrFile("--grant", f.grant)
		if err != nil {
			return q, err
		}
		if err := json.Unmarshal([]byte(text), &q.Connections); err != nil {
			return q, usagef("--grant: want [{\"connectionId\":…,\"scope\":…}]: %w", err)
		}
	case len(f.connections) == 0:
		return q, usagef("sluice assistants add needs --connection ID: an assistant sees only what is named")
	case narrowed && (len(f.connections) != 1 || len(f.streams) == 0):
		return q, usagef("--fields, --resources, --since and --until are for --stream of one --connection; --grant says more")
	default:
		scope, err := f.scope(narrowed)
		if err != nil {
			return q, err
		}
		for _, id := range f.connections {
			q.Connections = append(q.Connections, host.AssistantGrant{ConnectionID: id, Scope: scope})
		}
	}
	if f.expires != "" {
		at, err := parseWhen(f.expires, time.Now())
		if err != nil {
			return q, usagef("--expires %s: %w", abi.Clean(f.expires), err)
		}
		q.ExpiresAt = &at
	}
	return q, nil
}

func (f *assistantFlags) scope(narrowed bool) (json.RawMessage, error) {
	if !narrowed {
		return nil, nil
	}
	var streams []map[string]any
	for _, name := range f.streams {
		s := map[string]any{"name": name}
		if f.fields != nil {
			s["fields"] = f.fields
		}
		if f.resources != nil {
			s["resources"] = f.resources
		}
		times := map[string]string{}
		if f.since != "" {
			times["since"] = f.since
		}
		if f.until != "" {
			times["until"] = f.until
		}
		if len(times) > 0 {
			s["time_range"] = times
		}
		streams = append(streams, s)
	}
	return json.Marshal(map[string]any{"streams": streams})
}

// visibleText says what an assistant may see, in short.
func visibleText(a host.Assistant) string {
	var parts []string
	for _, g := range a.Connections {
		var s struct {
			Streams []struct {
				Name string `json:"name"`
			} `json:"streams"`
		}
		part := g.ConnectionID
		if json.Unmarshal(g.Scope, &s) == nil && len(s.Streams) > 0 {
			var names []string
			for _, x := range s.Streams {
				names = append(names, abi.Clean(x.Name))
			}
			part += " (" + strings.Join(names, ", ") + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func (c assistantCommands) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List assistants",
		Long:    "Lists assistants, those that were revoked too, never a token. With --json: one array.",
		Example: "  sluice assistants list", Args: args(0, 0, "no arguments"),
		RunE: c.stored(func(ctx context.Context, s *client.Client, _ []string) error {
			all, err := s.Assistants(ctx)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, a := range all {
				used := "never"
				if a.LastUsedAt != nil {
					used = c.timeText(*a.LastUsedAt)
				}
				rows = append(rows, []string{a.Name, a.Status, strconv.FormatUint(a.Calls, 10), strconv.Itoa(a.Waiting), used,
					permissionText(a), visibleText(a)})
			}
			return c.printList(all, []string{"assistant", "status", "calls", "waiting", "used", "may", "sees"}, rows)
		}),
	}
}

func permissionText(a host.Assistant) string {
	words := []string{"read"}
	if a.Run {
		words = append(words, "run")
	}
	if a.Ask {
		words = append(words, "asks")
	}
	return strings.Join(words, ",")
}

// one returns a command about one assistant, which it shows.
func (c assistantCommands) one(verb, short, long string,
	do func(context.Context, *client.Client, string) (host.Assistant, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Example: "  sluice assistants " + verb + " notes",
		Args: args(1, 1, "the name of an assistant"),
		RunE: c.stored(func(ctx context.Context, s *client.Client, a []string) error {
			x, err := do(ctx, s, a[0])
			if err != nil {
				return errNoAssistant(err, a[0])
			}
			if c.json {
				return printJSON(c.out, x)
			}
			expires := "never"
			if x.ExpiresAt != nil {
				expires = x.ExpiresAt.Local().Format(time.DateTime)
			}
			c.warnf("Assistant %s is %s: it may %s, expires %s, and has made %d calls.", x.Name, x.Status,
				permissionText(x), expires, x.Calls)
			var rows [][]string
			for _, g := range x.Connections {
				scope := "everything declared"
				if len(g.Scope) > 0 && string(g.Scope) != "null" {
					scope = abi.Clean(string(g.Scope))
				}
				rows = append(rows, []string{g.ConnectionID, scope})
			}
			return c.table([]string{"connection", "scope"}, rows)
		}),
	}
}

func errNoAssistant(err error, name string) error {
	if errors.Is(err, store.ErrNotFound) {
		return missingf("not_found", "there is no assistant %q; sluice assistants list lists them", abi.Clean(name))
	}
	return err
}

func (c assistantCommands) show() *cobra.Command {
	return c.one("show", "Show an assistant and what it may see",
		"Shows an assistant with its grant. With --json: one object.",
		func(ctx context.Context, k *client.Client, name string) (host.Assistant, error) {
			return k.Assistant(ctx, name)
		})
}

func (c assistantCommands) revoke() *cobra.Command {
	return c.one("revoke", "End an assistant at once",
		"Ends an assistant at once, also calls that are on their way, and removes what was copied\nfor it. Its calls stay on record. With --json: one object.",
		func(ctx context.Context, k *client.Client, name string) (host.Assistant, error) {
			return k.RevokeAssistant(ctx, name)
		})
}

func (c assistantCommands) calls() *cobra.Command {
	limit := 50
	cmd := &cobra.Command{
		Use: "calls NAME", Short: "List what an assistant called",
		Long:    "Lists the newest calls of an assistant, those that wait for you first. With --json: one array.",
		Example: "  sluice assistants calls notes", Args: args(1, 1, "the name of an assistant"),
		RunE: func(cmd *cobra.Command, a []string) error {
			if limit < 1 || limit > 10_000 {
				return usagef("--limit: want 1 to 10000")
			}
			return c.withStoredData(cmd.Context(), func(s *client.Client) error {
				calls, err := s.AssistantCalls(cmd.Context(), a[0], 0, limit)
				if err != nil {
					return errNoAssistant(err, a[0])
				}
				if c.json {
					return printJSON(c.out, calls)
				}
				var rows [][]string
				for _, x := range calls {
					outcome := x.Outcome
					if x.Code != "" {
						outcome += " " + abi.Clean(x.Code)
					}
					rows = append(rows, []string{x.CallID, c.timeText(x.At), x.Tool, outcome, strconv.Itoa(x.Rows),
						strconv.Itoa(x.Bytes), abi.Clean(x.Arguments)})
				}
				if len(rows) == 0 {
					c.warnf("%s has not asked for anything yet.", abi.Clean(a[0]))
					return nil
				}
				return c.table([]string{"call", "at", "tool", "outcome", "rows", "bytes", "arguments"}, rows)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`")
	return cmd
}

func (c assistantCommands) decide(verb string, yes bool) *cobra.Command {
	word := map[bool]string{true: "yes", false: "no"}[yes]
	return &cobra.Command{
		Use: verb + " NAME CALL", Short: "Say " + word + " to a call that waits",
		Long: "Says " + word +
			" to a call of an assistant with --ask. sluice assistants calls lists those that\nwait. Nobody's yes is a no.",
		Example: "  sluice assistants " + verb + " notes call_01J9ZKM3",
		Args:    args(2, 2, "the name of an assistant and a call"),
		RunE: c.stored(func(ctx context.Context, s *client.Client, a []string) error {
			err := s.DecideCall(ctx, a[0], a[1], yes)
			if errors.Is(err, store.ErrNotFound) {
				return missingf("not_found", "no such call waits; sluice assistants calls %s lists those that do", abi.Clean(a[0]))
			}
			if err == nil {
				c.warnf("The call has your %s.", word)
			}
			return err
		}),
	}
}
