package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/signature"
)

// installFlags are how an install is to treat the module's signature.
type installFlags struct {
	force, yes, require bool
	signature, key      string
	manifest            string
}

func (c *command) install() *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use: "install FILE", Short: "Install a connector under its digest",
		Long: `Checks a module, compiles it, and lists it under its name. FILE is a .wasm file or
a source directory, which is built first. Nothing is granted by installing.

A signature is looked for in FILE.minisig. The first signed module of a connector
pins its publisher's key: from then on its modules must be signed with that key,
and uninstalling does not change that. --key pins the key you name instead of the
first that comes.

An older version, the same version with another module, another key or none where
one is pinned, or a name that looks like that of another connector is refused.
--force installs it all the same, after a question, or with --yes where nobody can
be asked. A signature that does not match is always refused.`,
		Example: "  sluice install mailbox.wasm\n  sluice install mailbox.wasm --key publisher.key.pub",
		Args:    args(1, 1, "one file or directory"),
		RunE: func(cmd *cobra.Command, a []string) error {
			ctx := cmd.Context()
			k, err := c.running(ctx)
			if err != nil {
				return err
			}
			if k != nil {
				return c.withFiles(func(h *app.Host) error { return c.installThere(ctx, h, k, a[0], f) })
			}
			return c.with(ctx, app.Options{}, func(h *app.Host) error { return c.doInstall(ctx, h, a[0], f) })
		},
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "install what is refused as suspicious")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with --force: do not ask again")
	cmd.Flags().BoolVar(&f.require, "require-signature", false, "refuse an unsigned module")
	cmd.Flags().StringVar(&f.signature, "signature", "", "the module's signature is in `FILE` (default: beside it, FILE.minisig)")
	cmd.Flags().StringVar(&f.manifest, "manifest", "", "the manifest is in `FILE`, and wins over the module's own; it becomes part of what is installed")
	cmd.Flags().StringVar(&f.key, "key", "", "the publisher's public key is in `FILE`: no other will do")
	return cmd
}

// load is the module to install.
func (f installFlags) load(ctx context.Context, h *app.Host, path string) (*app.Loaded, error) {
	if f.manifest == "" {
		return h.Load(ctx, path, "")
	}
	return h.Embed(ctx, path, f.manifest)
}

// read is the module's signature, nil for none. One of a module is none of the module
// with another manifest.
func (f installFlags) read(path string) (*signature.Signature, error) {
	s, err := app.ReadSignature(path, f.signature)
	if err == nil && s != nil && f.manifest != "" {
		return nil, usagef("the signature is that of %s without --manifest; sign what sluice build --wasm %[1]s --manifest %s writes, and install that", path, f.manifest)
	}
	return s, err
}

func (c *command) doInstall(ctx context.Context, h *app.Host, path string, f installFlags) error {
	o := app.InstallOptions{RequireSignature: f.require, Force: f.force, Confirm: func(why string) bool {
		return f.yes || c.confirm(why+". Install it? [yes/no] ")
	}}
	var err error
	if f.key != "" {
		if o.Key, err = readPublicKey(f.key); err != nil {
			return err
		}
	}
	l, err := f.load(ctx, h, path)
	if err != nil {
		return err
	}
	if o.Signature, err = f.read(path); err != nil {
		return err
	}
	c.warn(l)
	done, err := h.Install(ctx, l, o)
	if err != nil {
		return err
	}
	c.sayTrust(done)
	if c.json {
		return printJSON(c.out, lineOfConnector(done.Connector))
	}
	c.describe(l, nil)
	c.warnf("Installed %s %s. Run it with: sluice run %s", l.Connector.Name, abi.Clean(l.Connector.Version), l.Connector.Name)
	return nil
}

// installThere uploads a module to a running host. h reads and checks the file.
func (c *command) installThere(ctx context.Context, h *app.Host, k *client.Client, path string, f installFlags) error {
	l, err := f.load(ctx, h, path)
	if err != nil {
		return err
	}
	c.warn(l)
	q := host.InstallConnector{Module: l.Wasm, ExpectedDigest: string(l.Connector.Digest)}
	if q.Signature, err = c.signatureFor(l, path, f); err != nil {
		return err
	}
	if f.force {
		if q.Force = f.yes || c.confirm("Install it even if it is suspicious? [yes/no] "); !q.Force {
			return usagef("nothing was installed; --yes does not ask")
		}
	}
	done, _, err := k.InstallConnector(ctx, q)
	if err != nil {
		return err
	}
	installed := connectorFrom(done)
	if installed.Signer == nil {
		c.warnf("It is unsigned: nothing says who made it, and nothing will tell you if another makes the next one.")
	} else {
		c.warnf("It is signed with key %s. From now on modules of %s must be signed with it.", installed.Signer.KeyID, abi.Clean(string(installed.ID)))
	}
	if c.json {
		return printJSON(c.out, lineOfConnector(installed))
	}
	c.describe(l, nil)
	c.warnf("Installed %s %s. Make a connection with: sluice connect %s", installed.Name, abi.Clean(installed.Version), installed.Name)
	return nil
}

// signatureFor is the signature beside a module, verified with the key that the
// owner named.
func (c *command) signatureFor(l *app.Loaded, path string, f installFlags) ([]byte, error) {
	s, err := f.read(path)
	if err != nil {
		return nil, err
	}
	if s == nil {
		if f.require || f.key != "" {
			return nil, refused(app.CodeSignatureRequired, "the module is unsigned")
		}
		return nil, nil
	}
	if f.key != "" {
		key, err := readPublicKey(f.key)
		if err != nil {
			return nil, err
		}
		if err := s.Verify(key, l.Wasm, l.Claims()); err != nil {
			return nil, refused(app.CodeSignatureInvalid, abi.Clean(err.Error()))
		}
	}
	return signature.ReadFile(orWord(f.signature, path+signature.Suffix), signature.MaxSignature)
}

// sayTrust says in words what a signature is worth (S140).
func (c *command) sayTrust(done app.Installed) {
	k := done.Connector
	switch {
	case k.Signer == nil:
		c.warnf("It is unsigned: nothing says who made it, and nothing will tell you if another makes the next one.")
	case done.FirstUse:
		c.warnf("It is signed with key %s, which is trusted from now on because it came first: nobody has said yet whose it is.", k.Signer.KeyID)
		c.warnf("Compare it with what the publisher announces: %s", k.Signer.Key)
		c.warnf("From now on modules of %s must be signed with it.", abi.Clean(string(k.ID)))
	case done.Replaced != nil:
		c.warnf("It is signed with key %s, which takes the place of key %s, as you said: modules of %s must be signed with it from now on.",
			k.Signer.KeyID, done.Replaced.KeyID, abi.Clean(string(k.ID)))
	case done.Pinned:
		c.warnf("It is signed with the key you named, %s. From now on modules of %s must be signed with it.", k.Signer.KeyID, abi.Clean(string(k.ID)))
	default:
		c.warnf("It is signed with key %s, which is pinned for it.", k.Signer.KeyID)
	}
}

// confirm asks on the terminal; without one the answer is no.
func (c *command) confirm(question string) bool {
	t, ok := c.terminal()
	return ok && t.choose(abi.Clean(question))
}
