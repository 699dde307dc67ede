package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/grant"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

var _ host.Connectors = (*Service)(nil)

// InstallConnector implements host.Connectors (A169, A170, A179). The module
// is hashed before anything else looks at it. Nothing of it is run, and nothing
// is granted.
func (s *Service) InstallConnector(ctx context.Context, q host.InstallConnector) (host.Connector, bool, error) {
	who := host.Who(ctx)
	l, signed, err := s.submitted(q)
	if err != nil {
		return host.Connector{}, false, asked(err)
	}
	old, listed, err := s.host.connector(ctx, string(l.Connector.ID), false)
	if err != nil {
		return host.Connector{}, false, err
	}
	same := listed && old.ID == l.Connector.ID && old.Digest == l.Connector.Digest && sameJSON(old.Manifest, l.Manifest.Raw)
	if same && signed == nil {
		c, err := s.Connector(ctx, string(old.ID))
		return c, false, err
	}
	if !same && !q.Force && conflicts(old, listed, l) {
		return host.Connector{}, false, host.Refuse("connector_version_conflict", "another module is installed under this version of the connector; give the new one another version").
			With("installedDigest", string(old.Digest)).With("digest", string(l.Connector.Digest))
	}
	l.Connector.InstalledBy, l.Connector.Source = who.ID, "upload"
	if q.Digest != "" {
		l.Connector.Source = "digest"
	}
	done, err := s.host.Install(ctx, l, InstallOptions{
		Signature: signed, RequireSignature: s.host.Options.RequireSignature, Force: q.Force, Conformance: q.Conformance, Confirm: func(string) bool { return q.Force },
	})
	if err != nil {
		return host.Connector{}, false, installRefusal(err)
	}
	c, err := s.Connector(ctx, string(done.Connector.ID))
	return c, !same, err
}

// conflicts: the version is taken by other bytes, of the module or its manifest.
func conflicts(old store.Connector, listed bool, l *Loaded) bool {
	return listed && old.ID == l.Connector.ID && compareVersions(old.Version, l.Connector.Version) == 0
}

// installRefusal words for the API what Install words for a terminal.
func installRefusal(err error) error {
	told := asked(err)
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

// submitted loads what is to be installed or looked at.
func (s *Service) submitted(q host.InstallConnector) (*Loaded, *signature.Signature, error) {
	if q.ExpectedDigest != "" && !isDigest(q.ExpectedDigest) {
		return nil, nil, invalid("expectedDigest", "digest_invalid", "want sha256: and 64 lower-case hexadecimal digits")
	}
	wasm, err := s.bytesOf(q)
	if err != nil {
		return nil, nil, err
	}
	if sum := sha256.Sum256(wasm); q.ExpectedDigest != "" && q.ExpectedDigest != "sha256:"+hex.EncodeToString(sum[:]) {
		return nil, nil, host.Refuse("pack_integrity_failure", "the module is not the one that was expected: its digest is another").
			With("digest", "sha256:"+hex.EncodeToString(sum[:]))
	}
	l, err := s.host.LoadBytes(wasm, q.Manifest)
	if err != nil {
		return nil, nil, err
	}
	embedded := l.Module.Manifest
	if len(q.Manifest) > 0 && embedded != nil && !sameJSON(embedded, q.Manifest) {
		return nil, nil, host.Refuse("connector_invalid", "the module carries a manifest, and another is beside it; leave one of them out").With("rule", "manifest_twice")
	}
	if len(q.Signature) == 0 {
		return l, nil, nil
	}
	if embedded == nil {
		return nil, nil, host.Refuse(CodeSignatureInvalid, "a signature covers the module and nothing beside it; embed the manifest, and sign again")
	}
	signed, err := signature.Parse(q.Signature)
	if err != nil {
		return nil, nil, host.Refuse(CodeSignatureInvalid, "this is no signature of minisign")
	}
	return l, signed, nil
}

// bytesOf are the bytes of a module: those that came, or those that the store
// holds under a digest (A170).
func (s *Service) bytesOf(q host.InstallConnector) ([]byte, error) {
	switch {
	case (q.Module == nil) == (q.Digest == ""):
		return nil, invalid("module", "one_of", "give either the module or its digest")
	case q.Digest == "":
		return q.Module, nil
	case !isDigest(q.Digest):
		return nil, invalid("digest", "digest_invalid", "want sha256: and 64 lower-case hexadecimal digits")
	}
	d := store.Digest(q.Digest)
	if _, err := os.Lstat(s.host.modulePath(d)); s.host.DataDir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("module")
	}
	return s.host.openModule(store.Connector{ID: store.ConnectorID(d), Name: "this digest", Digest: d})
}

// isDigest: it names a file of the modules and nothing else.
func isDigest(text string) bool {
	sum, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(sum) == 2*sha256.Size && !strings.ContainsFunc(sum, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// sameJSON compares but for white space, and for how the store escapes.
func sameJSON(a, b []byte) bool {
	one, err := json.Marshal(json.RawMessage(a))
	two, err2 := json.Marshal(json.RawMessage(b))
	return err == nil && err2 == nil && bytes.Equal(one, two)
}

// InspectConnector implements host.Connectors (A172). It stores nothing.
func (s *Service) InspectConnector(ctx context.Context, q host.InstallConnector) (host.Inspection, error) {
	l, signed, err := s.submitted(q)
	if err != nil {
		return host.Inspection{}, asked(err)
	}
	out := host.Inspection{
		Manifest: l.Manifest.Raw, Requested: requestedBy(l.Manifest), Imports: []string{}, Findings: warnings(l.Connector),
		Signature: host.Signature{Status: "unsigned"}, Digest: string(l.Connector.Digest), Size: l.Module.Size, Words: words(Wants(l.Manifest)),
	}
	for _, i := range l.Module.Imports {
		out.Imports = append(out.Imports, i.String())
	}
	t, err := s.host.trust(ctx, l, InstallOptions{Signature: signed})
	if err != nil {
		return host.Inspection{}, installRefusal(err)
	}
	if t.signer != nil {
		out.Signature = host.Signature{Status: "verified", Signer: t.signer.Key}
	}
	if pin, ok, err := s.host.Pinned(ctx, l.Connector.ID); err != nil {
		return host.Inspection{}, err
	} else if ok {
		out.Pinned = pin.Signer.Key
	}
	why, err := s.host.suspicious(ctx, l.Connector)
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

func words(wants []grant.Want) []string {
	out := []string{}
	for _, w := range wants {
		out = append(out, w.String())
	}
	return out
}

// Connectors implements host.Connectors (A173).
func (s *Service) Connectors(ctx context.Context) ([]host.Connector, error) {
	v, err := s.view(ctx)
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

// Connector implements host.Connectors (A174): by name or id.
func (s *Service) Connector(ctx context.Context, name string) (host.Connector, error) {
	v, err := s.view(ctx)
	if err != nil {
		return host.Connector{}, err
	}
	k, ok := v.named(name)
	if !ok {
		return host.Connector{}, notFound("connector")
	}
	return v.connector(ctx, k)
}

// UninstallConnector implements host.Connectors (A177). Its module stays
// until space is needed: it can be installed again by its digest.
func (s *Service) UninstallConnector(ctx context.Context, name, version string) error {
	v, err := s.view(ctx)
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
		return host.Refuse("connector_in_use", "connections of this connector exist: %s; delete them first", strings.Join(using, ", ")).With("connectionIds", using)
	}
	return asked(s.host.uninstall(ctx, k))
}

// requestedBy is what a manifest asks for, by sort (A178).
func requestedBy(m *abi.Manifest) host.RequestedByAll {
	out := host.RequestedByAll{Bindings: bindingsOf(m), Secrets: []string{}, Streams: []string{}, InteractionKinds: append([]string{}, m.HumanKinds...)}
	for _, f := range run.SecretFields(m) {
		out.Secrets = append(out.Secrets, f.Name)
	}
	for _, st := range m.Streams {
		out.Streams = append(out.Streams, st.Name)
	}
	return out
}

// bindingsOf are the bindings that a manifest asks for.
func bindingsOf(m *abi.Manifest) map[string]host.RequestedBinding {
	out := map[string]host.RequestedBinding{}
	for name, b := range m.Bindings {
		r := host.RequestedBinding{Required: b.Required}
		if k, known := Kinds.Of(name); known {
			k.Request(b, &r)
		}
		out[name] = r
	}
	return out
}

func warnings(k store.Connector) []host.Warning {
	out := []host.Warning{}
	for _, w := range k.Warnings {
		out = append(out, host.Warning{Code: w.Code, Message: w.Message})
	}
	return out
}

// abiOf says what a connector speaks.
func abiOf(k store.Connector) host.ABI {
	if k.Transport == "stdio" {
		return host.ABI{Family: "stdio", Version: "0.1.0"}
	}
	return host.ABI{Family: "sluice", Version: fmt.Sprintf("%d.%d", abi.Major, abi.Minor)}
}
