package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

type signFlags struct {
	key, newKey, password string
	unencrypted           bool
}

// signCommands are sluice sign and verify.
type signCommands struct{ *command }

func (c signCommands) sign() *cobra.Command {
	var f signFlags
	cmd := &cobra.Command{
		Use: "sign FILE --key FILE", Short: "Sign a module, or make a key",
		Long: `Signs a module with your private key, so that those who installed it once take the
next one from you alone. The signature is FILE.minisig beside it; give out both. It
is minisign's, and covers the connector's id, version and digest as well.

--new-key FILE makes a private key, encrypted with a password, and its public key
in FILE.pub. Neither replaces a file. Who has the private key can publish in your
name, and a lost one cannot be had again.`,
		Example: "  sluice sign --new-key publisher.key\n  sluice sign mailbox.wasm --key publisher.key",
		Args:    args(0, 1, "one module"),
		RunE: func(cmd *cobra.Command, a []string) error {
			switch {
			case f.newKey != "" && (len(a) > 0 || f.key != ""):
				return usagef("--new-key makes a key and signs nothing: leave out the module and --key")
			case f.newKey != "":
				return c.makeKey(cmd.Context(), f)
			case f.unencrypted:
				return usagef("--unencrypted belongs to --new-key")
			case len(a) == 0 || f.key == "":
				return usagef("say what to sign, and with --key FILE your private key; sluice sign --new-key FILE makes one")
			}
			return c.doSign(cmd.Context(), a[0], f)
		},
	}
	cmd.Flags().StringVar(&f.key, "key", "", "your private key is in `FILE`")
	cmd.Flags().StringVar(&f.newKey, "new-key", "", "make a private key in `FILE`, and FILE.pub")
	cmd.Flags().StringVar(&f.password, "password-file", "", "read the key's password from `FILE`, - for standard input")
	cmd.Flags().BoolVar(&f.unencrypted, "unencrypted", false,
		"with --new-key: no password; whoever reads the file has the key")
	return cmd
}

func (c signCommands) makeKey(ctx context.Context, f signFlags) error {
	if f.unencrypted && f.password != "" {
		return usagef("--unencrypted and --password-file: want one of them")
	}
	for _, path := range []string{f.newKey, f.newKey + signature.PublicSuffix} {
		if _, err := os.Lstat(path); err == nil {
			return usagef("%s is there already, and a key is never replaced; name another file", path)
		}
	}
	k, err := signature.NewKey()
	if err != nil {
		return err
	}
	text, err := c.keyText(ctx, k, f)
	if err != nil {
		return err
	}
	defer clear(text)
	if err := signature.WriteKey(f.newKey, text, k.Public()); err != nil {
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return usagef("%w; name another file", err)
		}
		return err
	}
	public := f.newKey + signature.PublicSuffix
	if c.json {
		return printJSON(c.out, map[string]string{"private_key_file": f.newKey, "public_key_file": public,
			"key_id": k.Public().ID(), "public_key": k.Public().String()})
	}
	c.warnf("Made key %s: %s is private, back it up; announce what is in %s where people find you.",
		k.Public().ID(), f.newKey, public)
	return nil
}

// keyText returns the private key's file, sealed unless the owner said otherwise.
func (c signCommands) keyText(ctx context.Context, k signature.PrivateKey, f signFlags) ([]byte, error) {
	if f.unencrypted {
		return k.Plain()
	}
	password, err := c.password(ctx, f.password, "a password for the new key", true)
	if err != nil {
		return nil, err
	}
	defer clear(password)
	return k.Sealed(password)
}

// password reads a key's password: from a file, else from the terminal without
// echo, twice for a new one.
func (c signCommands) password(ctx context.Context, file, what string, twice bool) ([]byte, error) {
	switch file {
	case "":
	case "-":
		return readValue(c.in, "--password-file", "standard input")
	default:
		f, err := os.Open(app.Home(file))
		if err != nil {
			return nil, usagef("--password-file: %w", err)
		}
		defer f.Close() // only read
		return readValue(f, "--password-file", file)
	}
	t, ok := c.terminal()
	if !ok {
		return nil, usagef("there is no terminal to ask for %s on; give it with --password-file FILE", what)
	}
	password, err := t.askSecret(ctx, what+": ")
	if err != nil || !twice {
		return password, err
	}
	again, err := t.askSecret(ctx, "again: ")
	defer clear(again)
	if err == nil && !bytes.Equal(password, again) {
		err = usagef("the two passwords differ; nothing is stored")
	}
	return password, err
}

func (c signCommands) doSign(ctx context.Context, path string, f signFlags) error {
	if err := moduleFile(path); err != nil {
		return err
	}
	l, _, err := c.load(ctx, path, "", "")
	if err != nil {
		return err
	}
	file, err := signature.ReadFile(f.key, signature.MaxKey)
	if err != nil {
		return usagef("--key: %w", err)
	}
	defer clear(file)
	k, err := signature.OpenKey(file, func() ([]byte, error) {
		return c.password(ctx, f.password, "password of "+f.key, false)
	})
	if err != nil {
		return usagef("--key %s: %w", f.key, err)
	}
	text, err := signature.Sign(k, l.Wasm, l.Claims(), time.Now())
	if err != nil {
		return usage{err}
	}
	to := path + signature.Suffix
	if err := writePublic(to, text); err != nil {
		return usagef("write signature: %w", err)
	}
	if c.json {
		return printJSON(c.out, verification{lineOfClaims(l.Claims()), to, "signed",
			store.Signer{KeyID: k.Public().ID(), Key: k.Public().String()}})
	}
	c.warnf("Signed %s %s with key %s: give out %s with it.", l.Connector.Name, abi.Clean(l.Connector.Version),
		k.Public().ID(), to)
	return nil
}

// writePublic atomically replaces a file that everybody may read.
func writePublic(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sign-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
