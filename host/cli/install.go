package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// installFlags are how an install is to treat the module's signature.
type installFlags struct {
	force, yes, require bool
	signature, key      string
	manifest            string
}

// installCommands are sluice install and inspect.
type installCommands struct{ *command }

func (c installCommands) install() *cobra.Command {
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
			return c.withClient(ctx, app.Options{}, func(k *client.Client) error { return c.doInstall(ctx, k, a[0], f) })
		},
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "install what is refused as suspicious")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "with --force: do not ask again")
	cmd.Flags().BoolVar(&f.require, "require-signature", false, "refuse an unsigned module")
	cmd.Flags().StringVar(&f.signature, "signature", "",
		"the module's signature is in `FILE` (default: beside it, FILE.minisig)")
	cmd.Flags().StringVar(&f.manifest, "manifest", "",
		"the manifest is in `FILE`, and wins over the module's own; it becomes part of what is installed")
	cmd.Flags().StringVar(&f.key, "key", "", "the publisher's public key is in `FILE`: no other will do")
	return cmd
}

// load returns the module to install.
func (f installFlags) load(ctx context.Context, h *app.Host, path string) (*app.Loaded, error) {
	if f.manifest == "" {
		return h.Load(ctx, path, "")
	}
	return h.Embed(ctx, path, f.manifest)
}

// doInstall looks at a module first, asks about what is suspicious, and installs it.
func (c installCommands) doInstall(ctx context.Context, k *client.Client, path string, f installFlags) error {
	q, l, err := c.submission(ctx, path, f)
	if err != nil {
		return err
	}
	c.warn(l)
	found, err := k.InspectConnector(ctx, q)
	if err != nil {
		return err
	}
	doubts := strings.Join(doubtsOf(found), "; ")
	q.Force = f.force && (f.yes || doubts != "" && c.confirm(doubts+". Install it? [yes/no] "))
	done, _, err := k.InstallConnector(ctx, q)
	if err != nil {
		return withDoubts(err, doubts, f)
	}
	c.printTrust(done.ConnectorID, signerOf(done), found.Pinned, f.key != "")
	if c.json {
		return printJSON(c.out, lineOfConnector(done))
	}
	c.describe(l, nil)
	c.warnf("Installed %s %s. Run it with: sluice run %s, or set it up with: sluice connect %[1]s", done.Name,
		abi.Clean(done.Version), done.Name)
	return nil
}

// submission returns the module with its signature and the key that the owner named. The
// file is read here: the host may run elsewhere.
func (c installCommands) submission(ctx context.Context, path string,
	f installFlags) (q host.InstallConnector, l *app.Loaded, err error) {
	err = c.withLocalHost(func(h *app.Host) error {
		l, err = f.load(ctx, h, path)
		return err
	})
	if err != nil {
		return q, nil, err
	}
	q.Module, q.ExpectedDigest = l.Wasm, string(l.Connector.Digest)
	s, err := app.ReadSignature(path, f.signature)
	if err != nil {
		return q, nil, err
	}
	var key signature.PublicKey
	if f.key != "" {
		if key, err = readPublicKey(f.key); err != nil {
			return q, nil, err
		}
		q.Key = key.String()
	}
	switch {
	case s == nil && f.key != "":
		return q, nil, signatureError(app.CodeSignatureRequired,
			string(l.Connector.ID)+" is unsigned, and --key names a key; put its signature beside it, or give --signature FILE")
	case s == nil && f.require:
		return q, nil, signatureError(app.CodeSignatureRequired,
			string(l.Connector.ID)+" is unsigned; put its signature beside it, or give --signature FILE")
	case s == nil:
		return q, l, nil
	case f.manifest != "":
		return q, nil, usagef(
			"the signature is that of %s without --manifest; sign what sluice build --wasm %[1]s --manifest %s writes, and install that", path, f.manifest)
	}
	carried, ok := s.Key()
	if f.key == "" {
		key = carried
	}
	if f.key != "" || ok { // else the host has the key, or refuses
		if err := s.Verify(key, l.Wasm, l.Claims()); err != nil {
			return q, nil, signatureError(app.CodeSignatureInvalid,
				abi.Clean(err.Error())+"; get both files again from the publisher, and its key if that is new")
		}
	}
	q.Signature, err = signature.ReadFile(orWord(f.signature, path+signature.Suffix), signature.MaxSignature)
	return q, l, err
}

// doubtsOf returns the findings that a swapped module would cause, too.
func doubtsOf(found host.Inspection) (doubts []string) {
	for _, w := range found.Findings {
		if w.Code == "untrusted" || w.Code == "suspicious" {
			doubts = append(doubts, w.Message)
		}
	}
	return doubts
}

// withDoubts adds to a refused install's error the doubts and how to install anyway.
func withDoubts(err error, doubts string, f installFlags) error {
	var e *client.Error
	if doubts == "" || !errors.As(err, &e) || e.Code != "connector_invalid" && e.Code != "connector_version_conflict" {
		return err
	}
	next := "use --force if you mean it"
	if f.force {
		next = "confirm it on a terminal, or with --yes"
	}
	return signatureError("connector_invalid", doubts+": needs confirmation; "+next)
}

// printTrust prints how far a signature can be trusted. pinned is the key that was pinned
// for the connector before, or "" if there is none.
func (c installCommands) printTrust(connector string, signer *store.Signer, pinned string, named bool) {
	was, err := signature.ParseKey(pinned)
	switch {
	case signer == nil:
		c.warnf("It is unsigned: nothing says who made it, and nothing will tell you if another makes the next one.")
	case pinned == signer.Key:
		c.warnf("It is signed with key %s, which is pinned for it.", signer.KeyID)
	case pinned != "" && err == nil:
		c.warnf("It is signed with key %s, which takes the place of key %s, as you said: modules of %s must be signed with it from now on.",
			signer.KeyID, was.ID(), abi.Clean(connector))
	case named:
		c.warnf("It is signed with the key you named, %s. From now on modules of %s must be signed with it.", signer.KeyID,
			abi.Clean(connector))
	default:
		c.warnf("It is signed with key %s, which is trusted from now on because it came first: nobody has said yet whose it is.", signer.KeyID)
		c.warnf("Compare it with what the publisher announces: %s", signer.Key)
		c.warnf("From now on modules of %s must be signed with it.", abi.Clean(connector))
	}
}

// confirm asks a yes-or-no question on the terminal; without one the answer is no.
func (c *command) confirm(question string) bool {
	t, ok := c.terminal()
	return ok && t.choose(abi.Clean(question))
}
