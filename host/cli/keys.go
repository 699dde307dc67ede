package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/store"
)

// keyCommands are sluice login, and keys with those below it.
type keyCommands struct{ *command }

func (c keyCommands) login() *cobra.Command {
	return &cobra.Command{
		Use: "login", Short: "Print a link that logs you in to the dashboard",
		Long:    "Prints a new login link of the running host. It works once, for 10 minutes. With\n--json: one object.",
		Example: "  sluice login",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.url != "" {
				return usagef("a login link is made where the host runs; over --url a key is all there is")
			}
			k, err := c.requireHost(cmd.Context())
			if err != nil {
				return err
			}
			l, err := k.Login(cmd.Context())
			if err != nil {
				return err
			}
			return c.printLogin(l)
		},
	}
}

// printLogin prints a login link, the plain address after it.
func (c keyCommands) printLogin(l client.Login) error {
	if c.json {
		return printJSON(c.out, l)
	}
	if _, err := fmt.Fprintf(c.out, "%s\n", l.URL); err != nil {
		return err
	}
	if l.PlainURL != "" {
		c.warnf("If that does not open: %s", l.PlainURL)
	}
	c.warnf("It works once, until %s.", l.ExpiresAt.Local().Format("15:04"))
	return nil
}

func (c keyCommands) keys() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Make and revoke API keys",
		Long: `API keys let programs use the API of a running host, each within its scopes.
docs/api.md lists the scopes. No host needs to run for these commands: what they
change holds for the next one that does.`,
		Example: "  sluice keys create reports --scope records:read --scope connections:read\n  sluice keys list",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice keys create, list or revoke")
		},
	}
	cmd.AddCommand(c.createKey(), c.listKeys(), c.revokeKey())
	return cmd
}

func (c keyCommands) createKey() *cobra.Command {
	var q access.NewKey
	var scopes []string
	var connections []string
	var test bool
	var expires string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make an API key; it is shown once",
		Long: `Makes an API key with the scopes given and prints it, once: the host keeps only a
hash. With --json: one object, the key is its member key.`,
		Example: "  sluice keys create ci --scope runs:create --scope runs:read --expires 90d > ci.key",
		Args:    args(1, 1, "a name"),
		RunE: func(cmd *cobra.Command, a []string) error {
			if len(scopes) == 0 {
				return usagef("sluice keys create needs --scope, such as --scope runs:read; docs/api.md lists them")
			}
			q.Name, q.Mode, q.Scopes, q.ConnectionIDs = a[0], access.Live, convertNames[access.Scope](scopes),
				convertNames[store.ConnectionID](connections)
			if test {
				q.Mode = access.Test
			}
			if expires != "" {
				at, err := parseWhen(expires, time.Now())
				if err != nil {
					return usagef("--expires %s: %w", abi.Clean(expires), err)
				}
				q.ExpiresAt = &at
			}
			return c.doCreateKey(cmd.Context(), q)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&scopes, "scope", nil, "what it may do, `SCOPE`; repeatable")
	fl.BoolVar(&test, "test", false, "only for connections in mode test and conformance connectors")
	fl.StringVar(&expires, "expires", "", "until `WHEN`: a date, a time, or a span such as 90d")
	fl.StringArrayVar(&connections, "connection", nil, "only for the connection `ID`; repeatable")
	return cmd
}

// convertNames are texts as others of their kind, or nil if there is none.
func convertNames[T, S ~string](list []S) (out []T) {
	for _, s := range list {
		out = append(out, T(s))
	}
	return out
}

func (c keyCommands) doCreateKey(ctx context.Context, q access.NewKey) error {
	var key access.MadeKey
	err := c.withStore(ctx, func(k *client.Client) (err error) {
		key, err = k.CreateKey(ctx, q)
		return err
	})
	var unknown *access.ScopeError
	if _, why := access.ScopesOf(q.Scopes); err != nil && errors.As(why, &unknown) {
		return usagef("--scope %s: there is no such scope; there are: %s", abi.Clean(string(unknown.Scopes[0])),
			strings.Join(convertNames[string](access.All()), ", "))
	}
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, key)
	}
	c.warnf("%s may %s. Keep the key: it is not shown again.", abi.Clean(key.Name),
		strings.Join(convertNames[string](key.Scopes), ", "))
	_, err = fmt.Fprintf(c.out, "%s\n", key.Secret)
	return err
}

func (c keyCommands) listKeys() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List API keys",
		Long:    "Lists API keys, revoked and expired ones too, never a secret. With --json: one array.",
		Example: "  sluice keys list",
		Args:    args(0, 0, "no arguments"),
		RunE: c.stored(func(ctx context.Context, k *client.Client, _ []string) error {
			all, err := k.Keys(ctx)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, key := range all {
				used := ""
				if key.LastUsedAt != nil {
					used = c.timeText(*key.LastUsedAt)
				}
				rows = append(rows, []string{key.KeyID, key.Name, key.Status, key.Mode, c.timeText(key.CreatedAt), used,
					strings.Join(convertNames[string](key.Scopes), " ")})
			}
			return c.printList(all, []string{"key", "name", "status", "mode", "made", "used", "scopes"}, rows)
		}),
	}
}

func (c keyCommands) revokeKey() *cobra.Command {
	return &cobra.Command{
		Use: "revoke KEY", Short: "Revoke an API key at once",
		Long:    "Revokes an API key, by its id. Streams that it holds open end within a minute.",
		Example: "  sluice keys revoke key_01J9ZKM3",
		Args:    args(1, 1, "one key id"),
		RunE: c.stored(func(ctx context.Context, k *client.Client, a []string) error {
			err := k.RevokeKey(ctx, a[0])
			if errors.Is(err, store.ErrNotFound) {
				return usagef("no key %q; sluice keys list lists them", abi.Clean(a[0]))
			}
			if err == nil {
				c.warnf("Revoked %s.", a[0])
			}
			return err
		}),
	}
}
