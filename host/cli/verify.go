package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

func (c signCommands) verify() *cobra.Command {
	var key, file string
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Verify who signed a module",
		Long: `Checks the signature of a module, in FILE.minisig, against the key you name or else
the one that is pinned for its connector. Without either it says so and fails: a
signature by a key that nobody vouches for proves nothing. Nothing is installed.`,
		Example: "  sluice verify mailbox.wasm --key publisher.key.pub",
		Args:    args(1, 1, "one module"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.doVerify(cmd.Context(), a[0], file, key)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the publisher's public key is in `FILE`")
	cmd.Flags().StringVar(&file, "signature", "", "the signature is in `FILE` (default: beside the module)")
	return cmd
}

// claimLine is what a signature is about.
type claimLine struct {
	Connector string `json:"connector_id"`
	Version   string `json:"version"`
	Digest    string `json:"digest"`
}

func lineOfClaims(c signature.Claims) claimLine { return claimLine(c) }

// verification is what sluice sign and sluice verify print as JSON.
type verification struct {
	claimLine
	File   string       `json:"signature_file"`
	Status string       `json:"status"` // signed; given or pinned, by where the key is from
	Signer store.Signer `json:"signer"`
}

func (c signCommands) doVerify(ctx context.Context, path, file, keyFile string) error {
	if err := moduleFile(path); err != nil {
		return err
	}
	var key signature.PublicKey
	var err error
	if keyFile != "" {
		if key, err = readPublicKey(keyFile); err != nil {
			return err
		}
	}
	l, _, err := c.load(ctx, path, "", "")
	if err != nil {
		return err
	}
	s, err := app.ReadSignature(path, file)
	if err != nil {
		return err
	}
	if file == "" {
		file = path + signature.Suffix
	}
	if s == nil {
		return signatureError(app.CodeSignatureRequired, path+" is unsigned: there is no "+file)
	}
	from := "given"
	if keyFile == "" {
		from = "pinned"
		if key, err = c.pinnedKey(ctx, l, s); err != nil {
			return err
		}
	}
	if err := s.Verify(key, l.Wasm, l.Claims()); err != nil {
		return &run.Refusal{Code: app.CodeSignatureInvalid, Message: file + ": " + err.Error(), Err: err}
	}
	if c.json {
		return printJSON(c.out, verification{lineOfClaims(l.Claims()), file, from,
			store.Signer{KeyID: key.ID(), Key: key.String()}})
	}
	c.screenOut().line(abi.Clean(l.Connector.Name + " " + l.Connector.Version + " is signed with the " + from + " key " +
		key.ID() + "  (" + string(l.Connector.ID) + ", " + string(l.Connector.Digest) + ")"))
	return nil
}

// pinnedKey finds the key to compare with on a host, if anything is stored there.
func (c signCommands) pinnedKey(ctx context.Context, l *app.Loaded,
	s *signature.Signature) (key signature.PublicKey, err error) {
	if c.url != "" || c.requireData() == nil {
		var pins []host.Pin
		err := c.withStoredData(ctx, func(src *client.Client) error {
			pins, err = src.Pins(ctx)
			return err
		})
		if err != nil {
			return key, err
		}
		for _, p := range pins {
			if p.ConnectorID == string(l.Connector.ID) {
				return signature.ParseKey(p.PublicKey)
			}
		}
	}
	return key, signatureError(app.CodeSignatureRequired,
		"the signature is by key "+s.KeyID()+", and no key is pinned for "+string(l.Connector.ID)+
			" to compare it with; name the publisher's with --key FILE")
}

func signatureError(code, message string) error { return &run.Refusal{Code: code, Message: message} }
