package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

func (c secretCommands) secret() *cobra.Command {
	cmd := &cobra.Command{
		Use: "secret", Short: "Keep secrets for a connection's runs",
		Long: `Secrets are kept encrypted in the data directory, one file each, outside the
store. A run uses those that its connector asks for, unless --secret gives another.
The key is beside them, in keys/vault.age-identity: whoever copies the whole data
directory can open them, unless sluice secret rotate --keyring has moved it.`,
		Example: "  sluice secret set mailbox token\n  sluice secret list",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice secret set, authorize, list, remove or rotate")
		},
	}
	cmd.AddCommand(c.setSecret(), c.authorizeSecret(), c.listSecrets(), c.removeSecret(), c.rotateSecrets())
	return cmd
}

func (c secretCommands) setSecret() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use: "set CONNECTION NAME", Short: "Store a secret, or replace it",
		Long: `Stores a secret under the name that the connector's manifest gives it. The value
is asked for on the terminal, without echo, or read from a file; it is never an
argument. Line ends after it are left out. The connection need not exist yet, unless
hosts share the store.`,
		Example: "  sluice secret set mailbox token\n  pass show mailbox | sluice secret set mailbox token --file -",
		Args:    args(2, 2, "a connection and a name, and the value is never an argument"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.doSetSecret(cmd.Context(), a[0], a[1], from)
		},
	}
	cmd.Flags().StringVar(&from, "file", "", "read the value from `FILE`, - for standard input")
	return cmd
}

func (c secretCommands) doSetSecret(ctx context.Context, connection, name, from string) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	if err := vault.CheckNames(connection, name); err != nil {
		return err // before asking for the value
	}
	value, err := c.secretValue(ctx, connection, name, from)
	if err != nil {
		return err
	}
	defer clear(value)
	if !utf8.Valid(value) {
		return usagef("secret %s: the value is no UTF-8 text, which is all that a connector can be given", abi.Clean(name))
	}
	if err := v.set(ctx, connection, name, value); err != nil {
		return err
	}
	c.warnf("Stored %s for %s.", name, connection)
	return nil
}

// secretValue reads a value from the file from, or asks for it on the terminal.
func (c secretCommands) secretValue(ctx context.Context, connection, name, from string) ([]byte, error) {
	if from != "" {
		return valueFrom(c.in, from)
	}
	t, ok := c.terminal()
	if !ok {
		return nil, usagef("there is no terminal to ask on; give the value with --file FILE, or --file - for standard input")
	}
	return t.askSecret(ctx, fmt.Sprintf("%s for %s: ", abi.Clean(name), abi.Clean(connection)))
}

// valueFrom reads a value from the file of --file, - for standard input.
func valueFrom(in io.Reader, from string) ([]byte, error) {
	if from == "-" {
		return readValue(in, "--file", "standard input")
	}
	f, err := os.Open(app.Home(from))
	if err != nil {
		return nil, usagef("--file: %w", err)
	}
	defer f.Close()
	return readValue(f, "--file", from)
}

// readValue reads a value and leaves out the line ends after it.
func readValue(r io.Reader, flag, name string) ([]byte, error) {
	const most = vault.MaxValue + 2 // a line end
	b := make([]byte, most+1)
	n, err := io.ReadFull(r, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, usagef("%s: read %s: %w", flag, name, err)
	}
	value := bytes.TrimRight(b[:n], "\r\n")
	if n > most || len(value) == 0 || len(value) > vault.MaxValue {
		clear(b)
		return nil, usagef("%s: %s must hold 1 byte to 16 KiB", flag, name)
	}
	return value, nil
}

// secretLine is a stored secret as a list shows it.
type secretLine struct {
	Connection store.ConnectionID `json:"connection_id"`
	Name       string             `json:"name"`
	SetAt      string             `json:"set_at"`
	Authorized bool               `json:"authorized,omitempty"` // by sluice secret authorize
	at         time.Time
}

func (c secretCommands) listSecrets() *cobra.Command {
	return &cobra.Command{
		Use: "list [CONNECTION]", Short: "List the names of stored secrets",
		Long:    "Lists which secrets are stored and since when, never a value. With --json: one\narray.",
		Example: "  sluice secret list mailbox",
		Args:    args(0, 1, "at most one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			v, err := c.vault(cmd.Context())
			if err != nil {
				return err
			}
			lines, err := v.list(cmd.Context(), a)
			if err != nil {
				return err
			}
			return c.printSecrets(lines)
		},
	}
}

func (c secretCommands) printSecrets(lines []secretLine) error {
	if c.json {
		return printJSON(c.out, lines)
	}
	var rows [][]string
	for _, l := range lines {
		row := []string{string(l.Connection), l.Name, c.timeText(l.at)}
		if l.Authorized {
			row = append(row, "by authorization")
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		c.warnf("No secret is stored; sluice secret set CONNECTION NAME stores one.")
	}
	return c.table([]string{"connection", "name", "set", "how"}, rows)
}

func (c secretCommands) removeSecret() *cobra.Command {
	return &cobra.Command{
		Use: "remove CONNECTION NAME", Short: "Delete a stored secret",
		Long: `Deletes the file of a secret. Disks may keep what it held for a while; sluice
secret rotate makes that unreadable.`,
		Example: "  sluice secret remove mailbox token",
		Args:    args(2, 2, "a connection and a name"),
		RunE: func(cmd *cobra.Command, a []string) error {
			v, err := c.vault(cmd.Context())
			if err != nil {
				return err
			}
			if err := v.remove(cmd.Context(), a[0], a[1]); err != nil {
				return err
			}
			c.warnf("Removed %s of %s.", a[1], a[0])
			return nil
		},
	}
}

func (c secretCommands) rotateSecrets() *cobra.Command {
	var keyring, file bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Encrypt all secrets under a new key",
		Long: `Encrypts every stored secret under a new key and deletes the old one, so that what
is left of removed secrets cannot be read. Flash and copy-on-write disks may keep
the old key itself, and so may backups: where that matters, change the secrets too.
Stopped halfway, every secret stays readable; run it again to complete it.

--keyring seals the new key with one that the operating system's keyring keeps for
you: then the data directory alone opens no secret, and runs need your session.
--file keeps it in a file again, beside the secrets.

Of a store that hosts share, the key of their vault is changed; --keyring and --file
are about the key of this host, with which it opens that.`,
		Example: "  sluice secret rotate\n  sluice secret rotate --keyring",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.url != "" {
				return usagef("keys of secrets are changed where the host runs, not over --url")
			}
			if shared, err := app.Shares(c.store); err != nil || shared && !keyring && !file {
				if err == nil {
					err = c.withStore(cmd.Context(), func(k *client.Client) error { return k.RotateVault(cmd.Context()) })
				}
				if err == nil {
					c.warnf("All secrets are encrypted under a new key.")
				}
				return err
			}
			// Here, also while a host runs: the new key may be for the keyring of this session.
			v, err := app.OpenVault(c.store)
			if err != nil {
				return err
			}
			to := vault.Place("")
			switch {
			case keyring && file:
				return usagef("--keyring and --file contradict each other")
			case keyring:
				to = vault.InKeyring
			case file:
				to = vault.InFile
			}
			if err := v.Rotate(to); err != nil {
				return err
			}
			c.warnf("All secrets are encrypted under a new key.")
			return nil
		},
	}
	cmd.Flags().BoolVar(&keyring, "keyring", false, "keep the new key in the OS keyring")
	cmd.Flags().BoolVar(&file, "file", false, "keep the new key in a file of the data directory")
	return cmd
}

// secrets are where sluice secret puts a value: the vault in the data directory, or
// a host elsewhere. The vault is opened here, with and without a running host, which
// shares it: a value is stored before there is a connection, and also while another
// process has the store.
type secrets interface {
	set(ctx context.Context, connection, name string, value []byte) error
	remove(ctx context.Context, connection, name string) error
	// list has those of one connection, or of all when none is named.
	list(ctx context.Context, of []string) ([]secretLine, error)
}

func (c secretCommands) vault(context.Context) (secrets, error) {
	if c.url != "" {
		k, err := c.remote()
		return remoteSecrets{k}, err
	}
	if shared, err := app.Shares(c.store); err != nil || shared {
		return sharedSecrets{c}, err
	}
	v, err := app.OpenVault(c.store)
	return localSecrets{v}, err
}

type localSecrets struct{ *app.AuditedVault }

func (s localSecrets) set(_ context.Context, connection, name string, value []byte) error {
	return s.Set(connection, name, value)
}

func (s localSecrets) remove(_ context.Context, connection, name string) error {
	return s.Remove(connection, name)
}

func (s localSecrets) list(_ context.Context, of []string) ([]secretLine, error) {
	all, err := s.List()
	lines := []secretLine{}
	for _, e := range all {
		if e.Connection == vault.Host || len(of) > 0 && e.Connection != of[0] {
			continue
		}
		lines = append(lines, secretLine{store.ConnectionID(e.Connection), e.Name, store.Time(e.Set),
			app.IsAuthorization(s.Vault, e), e.Set})
	}
	return lines, err
}

// sharedSecrets are those of hosts that share a store, which is asked through a host.
type sharedSecrets struct{ secretCommands }

func (s sharedSecrets) set(ctx context.Context, connection, name string, value []byte) error {
	return s.withStore(ctx, func(k *client.Client) error { return remoteSecrets{k}.set(ctx, connection, name, value) })
}

func (s sharedSecrets) remove(ctx context.Context, connection, name string) error {
	return s.withStore(ctx, func(k *client.Client) error { return remoteSecrets{k}.remove(ctx, connection, name) })
}

func (s sharedSecrets) list(ctx context.Context, of []string) (lines []secretLine, err error) {
	err = s.withStoredData(ctx, func(k *client.Client) error {
		lines, err = remoteSecrets{k}.list(ctx, of)
		return err
	})
	return lines, err
}

type remoteSecrets struct{ *client.Client }

func (s remoteSecrets) set(ctx context.Context, connection, name string, value []byte) error {
	return s.SetSecret(ctx, store.ConnectionID(connection), name, value)
}

func (s remoteSecrets) remove(ctx context.Context, connection, name string) error {
	return s.RemoveSecret(ctx, store.ConnectionID(connection), name)
}

func (s remoteSecrets) list(ctx context.Context, of []string) ([]secretLine, error) {
	if len(of) == 0 {
		all, err := s.Connections(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range all {
			of = append(of, k.ConnectionID)
		}
	}
	lines := []secretLine{}
	for _, id := range of {
		found, err := s.Secrets(ctx, store.ConnectionID(id))
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			if x.Set && x.SetAt != nil {
				lines = append(lines, secretLine{store.ConnectionID(id), x.Name, store.Time(*x.SetAt), x.OAuth, *x.SetAt})
			}
		}
	}
	return lines, nil
}
