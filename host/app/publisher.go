package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// publishers knows by whom the module of a connector must be signed.
type publishers struct {
	*directory
	modules *modules
}

// Codes of refused signatures.
const (
	CodeSignatureRequired = "signature_required"
	CodeSignatureInvalid  = "signature_invalid"
)

// ReadSignature reads the signature of a module from file or, if file is "", from the one beside the module. It
// is nil if there is none beside it.
func ReadSignature(module, file string) (*signature.Signature, error) {
	path := file
	if file == "" {
		path = module + signature.Suffix
		if fi, err := os.Stat(module); err != nil || fi.IsDir() {
			return nil, nil // the module was built from source or is installed
		}
	}
	text, err := signature.ReadFile(path, signature.MaxSignature)
	if file == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, refusal(CodeSignatureInvalid, fmt.Errorf("read signature: %w", err))
	}
	s, err := signature.Parse(text)
	if err != nil {
		return nil, refusal(CodeSignatureInvalid, fmt.Errorf("%s: %w", path, err))
	}
	return s, nil
}

// Claims returns what a signature must state about the connector.
func (l *Loaded) Claims() signature.Claims {
	return signature.Claims{Connector: string(l.Connector.ID), Version: l.Connector.Version,
		Digest: string(l.Connector.Digest)}
}

// Pinned returns the pinned key of a connector.
func (ps *publishers) Pinned(ctx context.Context, id store.ConnectorID) (store.Pin, bool, error) {
	pins, err := ps.Store.Pins(ctx)
	if err != nil {
		return store.Pin{}, false, fmt.Errorf("list pinned keys: %w", err)
	}
	for _, p := range pins {
		if p.ConnectorID == id {
			return p, true, nil
		}
	}
	return store.Pin{}, false, nil
}

// A signatureTrust is the outcome of checking a module's signature.
type signatureTrust struct {
	signer   *store.Signer // nil for an unsigned module
	pins     bool          // signer becomes the pinned key
	replaces *store.Signer // the key that signer replaces
	doubts   []string      // what the owner has to decide
}

// trust verifies a module's signature, with the key that the owner names, or else the one that the signature
// carries, or else the pinned one, and compares the key with the pinned one. An invalid signature is always
// refused. A key other than the pinned one, or a missing signature, is left to the owner as a doubt.
func (ps *publishers) trust(ctx context.Context, l *Loaded, o InstallOptions) (signatureTrust, error) {
	pin, pinned, err := ps.Pinned(ctx, l.Connector.ID)
	if err != nil {
		return signatureTrust{}, err
	}
	if o.Signature == nil {
		return unsigned(l, o, pin, pinned)
	}
	key := o.Key
	if carried, ok := o.Signature.Key(); key == (signature.PublicKey{}) && ok {
		key = carried
	} else if key == (signature.PublicKey{}) {
		if !pinned {
			return signatureTrust{},
				refusal(CodeSignatureInvalid,
					fmt.Errorf("the signature names key %s and does not carry it; give the publisher's public key with --key FILE",
						o.Signature.KeyID()))
		}
		if key, err = signature.ParseKey(pin.Signer.Key); err != nil {
			return signatureTrust{},
				refusal(CodeSignatureInvalid,
					fmt.Errorf("pinned key of %s: %w; give the publisher's with --key FILE", l.Connector.ID, err))
		}
	}
	if err := o.Signature.Verify(key, l.Wasm, l.Claims()); err != nil {
		return signatureTrust{},
			refusal(CodeSignatureInvalid,
				fmt.Errorf("%w; get both files again from the publisher, and its key if that is new", err))
	}
	t := signatureTrust{signer: &store.Signer{KeyID: key.ID(), Key: key.String()}}
	t.pins = !pinned || pin.Signer != *t.signer
	if pinned && t.pins {
		t.replaces = &pin.Signer
		t.doubts = []string{fmt.Sprintf(
			"%s is signed with key %s (%s), but key %s (%s) is pinned for it: its publisher has a new key, or it is not its publisher's",
			l.Connector.ID, key.ID(), key, pin.Signer.KeyID, pin.Signer.Key)}
	}
	return t, nil
}

func unsigned(l *Loaded, o InstallOptions, pin store.Pin, pinned bool) (signatureTrust, error) {
	switch {
	case o.Key != signature.PublicKey{}:
		return signatureTrust{},
			refusal(CodeSignatureRequired,
				fmt.Errorf("%s is unsigned, and --key names a key; put its signature beside it, or give --signature FILE",
					l.Connector.ID))
	case o.RequireSignature:
		return signatureTrust{},
			refusal(CodeSignatureRequired,
				fmt.Errorf("%s is unsigned; put its signature beside it, or give --signature FILE", l.Connector.ID))
	case pinned:
		return signatureTrust{doubts: []string{fmt.Sprintf("%s is unsigned, but key %s is pinned for it", l.Connector.ID,
			pin.Signer.KeyID)}}, nil
	}
	return signatureTrust{}, nil
}

// Doubts returns why a module that is not installed may not be its publisher's: a key is pinned for its
// connector, and that key did not sign it. A run of the module would get that connector's connections and
// secrets.
func (ps *publishers) Doubts(ctx context.Context, l *Loaded) ([]string, error) {
	installed, ok, err := ps.modules.connector(ctx, string(l.Connector.ID), false)
	if err != nil || ok && installed.Digest == l.Connector.Digest {
		return nil, err
	}
	if _, pinned, err := ps.Pinned(ctx, l.Connector.ID); err != nil || !pinned {
		return nil, err
	}
	o := InstallOptions{Signature: l.Signature}
	if l.File != "" {
		if o.Signature, err = ReadSignature(l.File, ""); err != nil {
			return []string{err.Error()}, nil
		}
	}
	t, err := ps.trust(ctx, l, o)
	return t.doubts, err
}

// checkDoubts refuses a module with Doubts, unless its owner accepts it or the connection ran it before.
func (ps *publishers) checkDoubts(ctx context.Context, q RunRequest) error {
	if c, err := ps.Store.Connection(ctx, q.connectionID()); q.Accepted ||
		err == nil && c.Digest == q.Connector.Connector.Digest {
		return nil
	}
	doubts, err := ps.Doubts(ctx, q.Connector)
	if err != nil || len(doubts) == 0 {
		return err
	}
	return refusal("binding_not_approved",
		fmt.Errorf("%s; look at it with sluice inspect, and give --yes if you mean it", strings.Join(doubts, "; ")))
}
