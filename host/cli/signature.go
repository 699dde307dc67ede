package cli

import (
	"os"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// signatureLine is what is known of a module's signature.
type signatureLine struct {
	// Status is verified, for an installed module with the pinned key; carried, for
	// a file that fits the key its signature carries; unchecked, for a file whose
	// signature carries none; invalid or unsigned.
	Status string        `json:"status"`
	Signer *store.Signer `json:"signer,omitempty"`
	Detail string        `json:"detail,omitempty"`
}

func (s signatureLine) text() string {
	switch s.Status {
	case "verified":
		return "Signed with key " + s.Signer.KeyID + ", as checked when it was installed."
	case "carried":
		return "Signed with key " + s.Signer.KeyID +
			"; whose it is, the signature cannot say: sluice verify compares it with a key you have."
	case "unchecked":
		return "Signed with key " + s.Signer.KeyID + ", which is not at hand: sluice verify --key FILE checks it."
	case "invalid":
		return "warning: its signature is no good: " + s.Detail
	}
	return "It is unsigned: nothing says who made it."
}

// signatureOf returns what is known of an installed connector, by who signed it.
func signatureOf(signer *store.Signer) signatureLine {
	if signer == nil {
		return signatureLine{Status: "unsigned"}
	}
	return signatureLine{Status: "verified", Signer: signer}
}

// signerOf returns who signed an installed connector, nil for nobody.
func signerOf(k host.Connector) *store.Signer {
	key, err := signature.ParseKey(k.Signature.Signer)
	if err != nil || k.Signature.Status != "verified" {
		return nil
	}
	return &store.Signer{KeyID: key.ID(), Key: key.String()}
}

// signatureAt looks at the signature beside a file, or at what was checked when
// a connector was installed. It trusts nothing and refuses nothing.
func signatureAt(l *app.Loaded, arg string) signatureLine {
	if app.IsName(arg) {
		return signatureOf(l.Connector.Signer)
	}
	s, err := app.ReadSignature(arg, "")
	switch {
	case err != nil:
		return signatureLine{Status: "invalid", Detail: err.Error()}
	case s == nil:
		return signatureLine{Status: "unsigned"}
	}
	key, ok := s.Key()
	if !ok {
		return signatureLine{Status: "unchecked", Signer: &store.Signer{KeyID: s.KeyID()}}
	}
	line := signatureLine{Status: "carried", Signer: &store.Signer{KeyID: key.ID(), Key: key.String()}}
	if err := s.Verify(key, l.Wasm, l.Claims()); err != nil {
		line.Status, line.Detail = "invalid", err.Error()
	}
	return line
}

func readPublicKey(path string) (signature.PublicKey, error) {
	text, err := signature.ReadFile(path, signature.MaxKey)
	if err != nil {
		return signature.PublicKey{}, usagef("--key: %w", err)
	}
	key, err := signature.ReadPublicKey(text)
	if err != nil {
		return key, usagef("--key %s: %w; beside a private key it is in FILE.pub", path, err)
	}
	return key, nil
}

// moduleFile returns an error for an argument that is no file.
func moduleFile(arg string) error {
	if fi, err := os.Stat(arg); err != nil || !fi.Mode().IsRegular() {
		return usagef("%.200q is no module's file; sluice build makes one of a source directory", arg)
	}
	return nil
}
