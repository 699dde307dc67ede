package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// connectors implements host.Connectors.
type connectors struct {
	*directory
	modules    *modules
	publishers *publishers
	installer  *installer
	overviews  *overviews
}

var _ host.Connectors = (*connectors)(nil)

// InstallConnector implements host.Connectors. The module is hashed before anything else reads it. None of its
// code runs, and nothing is granted.
func (cs *connectors) InstallConnector(ctx context.Context, q host.InstallConnector) (host.Connector, bool, error) {
	who := host.Who(ctx)
	l, signed, err := cs.loadSubmitted(ctx, q)
	if err != nil {
		return host.Connector{}, false, asRefusal(err)
	}
	old, listed, err := cs.modules.connector(ctx, string(l.Connector.ID), false)
	if err != nil {
		return host.Connector{}, false, err
	}
	key, err := namedKey(q.Key)
	if err != nil {
		return host.Connector{}, false, err
	}
	same := listed && old.ID == l.Connector.ID && old.Digest == l.Connector.Digest &&
		sameJSON(old.Manifest, l.Manifest.Raw)
	if same && signed == nil && cs.modules.has(ctx, old) {
		c, err := cs.Connector(ctx, string(old.ID))
		return c, false, err
	}
	if !same && !q.Force && conflicts(old, listed, l) {
		return host.Connector{}, false,
			host.Refuse("connector_version_conflict",
				"another module is installed under this version of the connector; give the new one another version").
				With("installedDigest", string(old.Digest)).With("digest", string(l.Connector.Digest))
	}
	l.Connector.InstalledBy, l.Connector.Source = who.ID, "upload"
	if q.Digest != "" {
		l.Connector.Source = "digest"
	}
	done, err := cs.installer.Install(ctx, l, InstallOptions{
		Signature: signed, Key: key, RequireSignature: cs.Options.RequireSignature, Force: q.Force,
		Conformance: q.Conformance, Confirm: func(string) bool { return q.Force },
	})
	if err != nil {
		return host.Connector{}, false, installRefusal(err)
	}
	c, err := cs.Connector(ctx, string(done.Connector.ID))
	return c, !same, err
}

// namedKey parses a publisher's public key, the zero PublicKey for "".
func namedKey(text string) (signature.PublicKey, error) {
	if text == "" {
		return signature.PublicKey{}, nil
	}
	key, err := signature.ParseKey(text)
	if err != nil {
		return key, invalid("key", "public_key", "want a public key of minisign")
	}
	return key, nil
}

// has reports whether the module of a listed connector is present and unchanged. A changed one is quarantined.
func (ms *modules) has(ctx context.Context, c store.Connector) bool {
	_, err := ms.openModule(ctx, c)
	return err == nil
}

// conflicts reports whether other bytes, of module or manifest, are installed under the same version.
func conflicts(old store.Connector, listed bool, l *Loaded) bool {
	return listed && old.ID == l.Connector.ID && compareVersions(old.Version, l.Connector.Version) == 0
}

// installRefusal replaces messages of Install, which are for a terminal, with ones for the API.
func installRefusal(err error) error {
	told := asRefusal(err)
	var r *host.Refusal
	if !errors.As(told, &r) {
		return told
	}
	switch {
	case errors.Is(err, ErrSuspicious):
		r.Message = "this module may not be what it says it is; look at the doubts, and force it only if you know better"
	case r.Code == CodeSignatureRequired:
		r.Message = "the module is unsigned, and this host installs only signed ones"
	case r.Code == CodeSignatureInvalid:
		r.Message = "the signature is not one of this module by the key of its publisher; get both files again from the publisher"
	}
	return r
}

// loadSubmitted loads the module that a request submits.
func (cs *connectors) loadSubmitted(ctx context.Context,
	q host.InstallConnector) (*Loaded, *signature.Signature, error) {
	if q.ExpectedDigest != "" && !isDigest(q.ExpectedDigest) {
		return nil, nil, invalid("expectedDigest", "digest_invalid", "want sha256: and 64 lower-case hexadecimal digits")
	}
	wasm, err := cs.bytesOf(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	if d := string(digestOf(wasm)); q.ExpectedDigest != "" && q.ExpectedDigest != d {
		return nil, nil, host.Refuse("pack_integrity_failure",
			"the module is not the one that was expected: its digest is another").With("digest", d)
	}
	l, err := cs.modules.LoadBytes(wasm, q.Manifest)
	if err != nil {
		return nil, nil, err
	}
	embedded := l.Module.Manifest
	if len(q.Manifest) > 0 && embedded != nil && !sameJSON(embedded, q.Manifest) {
		return nil, nil, host.Refuse("connector_invalid",
			"the module carries a manifest, and another is beside it; leave one of them out").With("rule", "manifest_twice")
	}
	if len(q.Signature) == 0 {
		return l, nil, nil
	}
	if embedded == nil {
		return nil, nil, host.Refuse(CodeSignatureInvalid,
			"a signature covers the module and nothing beside it; embed the manifest, and sign again")
	}
	signed, err := signature.Parse(q.Signature)
	if err != nil {
		return nil, nil, host.Refuse(CodeSignatureInvalid, "this is no signature of minisign")
	}
	return l, signed, nil
}

// bytesOf returns the bytes of a module: those in the request, or those stored under its digest.
func (cs *connectors) bytesOf(ctx context.Context, q host.InstallConnector) ([]byte, error) {
	switch {
	case (q.Module == nil) == (q.Digest == ""):
		return nil, invalid("module", "one_of", "give either the module or its digest")
	case q.Digest == "":
		return q.Module, nil
	case !isDigest(q.Digest):
		return nil, invalid("digest", "digest_invalid", "want sha256: and 64 lower-case hexadecimal digits")
	}
	d := store.Digest(q.Digest)
	here, err := cs.modules.present(ctx, d)
	if err != nil {
		return nil, err
	}
	if cs.DataDir == "" || !here {
		return nil, notFound("module")
	}
	return cs.modules.openModule(ctx, store.Connector{ID: store.ConnectorID(d), Name: "this digest", Digest: d})
}

// sameJSON compares JSON texts, ignoring white space and the way in which the store escapes.
func sameJSON(a, b []byte) bool {
	one, err := json.Marshal(json.RawMessage(a))
	two, err2 := json.Marshal(json.RawMessage(b))
	return err == nil && err2 == nil && bytes.Equal(one, two)
}

// InspectConnector implements host.Connectors. It stores nothing.
func (cs *connectors) InspectConnector(ctx context.Context, q host.InstallConnector) (host.Inspection, error) {
	l, signed, err := cs.loadSubmitted(ctx, q)
	if err != nil {
		return host.Inspection{}, asRefusal(err)
	}
	out := host.Inspection{
		Manifest: l.Manifest.Raw, Requested: requestedBy(l.Manifest), Imports: []string{}, Findings: warnings(l.Connector),
		Signature: host.Signature{Status: "unsigned"}, Digest: string(l.Connector.Digest), Size: l.Module.Size,
		Words: words(Wants(l.Manifest)),
	}
	for _, i := range l.Module.Imports {
		out.Imports = append(out.Imports, i.String())
	}
	key, err := namedKey(q.Key)
	if err != nil {
		return host.Inspection{}, err
	}
	t, err := cs.publishers.trust(ctx, l, InstallOptions{Signature: signed, Key: key})
	if err != nil {
		return host.Inspection{}, installRefusal(err)
	}
	if t.signer != nil {
		out.Signature = host.Signature{Status: "verified", Signer: t.signer.Key}
	}
	if pin, ok, err := cs.publishers.Pinned(ctx, l.Connector.ID); err != nil {
		return host.Inspection{}, err
	} else if ok {
		out.Pinned = pin.Signer.Key
	}
	why, err := cs.installer.suspicious(ctx, l.Connector)
	if err != nil {
		return host.Inspection{}, err
	}
	for _, w := range t.doubts {
		out.Findings = append(out.Findings, host.Warning{Code: "untrusted", Message: abi.Cut(abi.Clean(w), 1000)})
	}
	for _, w := range why {
		out.Findings = append(out.Findings, host.Warning{Code: "suspicious", Message: abi.Cut(abi.Clean(w), 1000)})
	}
	return out, nil
}

// Connectors implements host.Connectors.
func (cs *connectors) Connectors(ctx context.Context) ([]host.Connector, error) {
	v, err := cs.overviews.take(ctx)
	if err != nil {
		return nil, err
	}
	out := []host.Connector{}
	for _, k := range v.connectors {
		c, err := v.connector(ctx, k)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Connector implements host.Connectors. The name may be a name or an id.
func (cs *connectors) Connector(ctx context.Context, name string) (host.Connector, error) {
	v, err := cs.overviews.take(ctx)
	if err != nil {
		return host.Connector{}, err
	}
	k, ok := v.named(name)
	if !ok {
		return host.Connector{}, notFound("connector")
	}
	return v.connector(ctx, k)
}

// UninstallConnector implements host.Connectors. The module is kept until space is needed, so that it can be
// installed again by its digest.
func (cs *connectors) UninstallConnector(ctx context.Context, name, version string) error {
	v, err := cs.overviews.take(ctx)
	if err != nil {
		return err
	}
	k, ok := v.named(name)
	if !ok || version != "" && version != k.Version {
		return notFound("connector")
	}
	var using []string
	for _, c := range v.connections {
		if c.ConnectorID == k.ID {
			using = append(using, string(c.ID))
		}
	}
	if len(using) > 0 {
		return host.Refuse("connector_in_use", "connections of this connector exist: %s; delete them first",
			strings.Join(using, ", ")).With("connectionIds", using)
	}
	return asRefusal(cs.installer.uninstall(ctx, k))
}

// Pins implements host.Connectors.
func (cs *connectors) Pins(ctx context.Context) ([]host.Pin, error) {
	all, err := cs.Store.Pins(ctx)
	if err != nil {
		return nil, fmt.Errorf("list pinned keys: %w", err)
	}
	out := []host.Pin{}
	for _, p := range all {
		out = append(out, host.Pin{ConnectorID: string(p.ConnectorID), KeyID: p.Signer.KeyID, PublicKey: p.Signer.Key})
	}
	return out, nil
}
