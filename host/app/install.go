package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// InstallOptions say what the owner wants of an install.
type InstallOptions struct {
	// Signature of the module, nil for none.
	Signature *signature.Signature
	// Key is the only key that will do. The zero value means the pinned one, or on
	// first use the one that the signature carries.
	Key signature.PublicKey
	// RequireSignature refuses an unsigned module (S140).
	RequireSignature bool
	// Force and Confirm install what is suspicious: both have to say so (S141).
	// Confirm gets the reasons in one sentence; nil means no.
	Force   bool
	Confirm func(why string) bool
	// Conformance installs a connector of run-api.md A242, under its reserved id.
	Conformance bool
}

// An Installed connector, and what its signature changed.
type Installed struct {
	Connector store.Connector
	// Pinned: its key is pinned since this install.
	Pinned bool
	// FirstUse: nobody named the key, it was the first (S140).
	FirstUse bool
	// Replaced is the key that was pinned until now, nil for none.
	Replaced *store.Signer
}

// Install checks who signed a module, stores it under its digest, compiles it,
// and lists the connector (S138, S140, S37). Nothing is granted by installing.
// What an attacker who swaps modules would do is refused unless it is forced
// and confirmed (S141). A key that is pinned stays pinned after Uninstall.
func (h *Host) Install(ctx context.Context, l *Loaded, o InstallOptions) (Installed, error) {
	if err := h.room(); err != nil {
		return Installed{}, err
	}
	if err := reserved(l.Manifest, o.Conformance); err != nil {
		return Installed{}, err
	}
	before, err := h.revision(ctx, l.Connector)
	if err != nil {
		return Installed{}, err
	}
	t, err := h.trust(ctx, l, o)
	if err != nil {
		return Installed{}, err
	}
	why, err := h.suspicious(ctx, l.Connector)
	if err != nil {
		return Installed{}, err
	}
	if err := o.agreed(append(t.doubts, why...)); err != nil {
		e := by(ctx, installEvent(audit.PolicyRefused, l.Connector))
		e.Outcome = audit.Refused
		return Installed{}, errors.Join(err, h.Audit(e))
	}
	if _, err := h.Sandbox.Prepare(ctx, l.Module, l.Wasm); err != nil {
		return Installed{}, prepareRefusal(err)
	}
	if err := h.keepModule(l); err != nil {
		return Installed{}, err
	}
	l.Connector.InstalledAt, l.Connector.Signer, l.Connector.Conformance = time.Now(), t.signer, o.Conformance
	done := Installed{Connector: l.Connector, Pinned: t.pins, Replaced: t.replaces,
		FirstUse: t.pins && t.replaces == nil && o.Key == signature.PublicKey{}}
	h.listing.Lock()
	defer h.listing.Unlock()
	if now, err := h.revision(ctx, l.Connector); err != nil || now != before {
		return Installed{}, cmp.Or(err, error(refusal("conflict", errors.New("another module of this connector was installed meanwhile; look again"))))
	}
	l.Connector.Revision = before + 1
	done.Connector = l.Connector
	if t.pins { // before the connector: a crash between the two leaves no unguarded one
		pin := store.Pin{ConnectorID: l.Connector.ID, Name: l.Connector.Name, Signer: *t.signer, PinnedAt: l.Connector.InstalledAt}
		if err := h.Store.PutPin(ctx, pin); err != nil {
			return Installed{}, fmt.Errorf("pin key: %w", err)
		}
	}
	return done, h.audited(by(ctx, installEvent(audit.ConnectorInstalled, l.Connector)), func() error { return h.Store.PutConnector(ctx, l.Connector) })
}

// revision counts the modules that a connector has had; 0 is none.
func (h *Host) revision(ctx context.Context, c store.Connector) (uint64, error) {
	all, err := h.Store.Connectors(ctx)
	if err != nil {
		return 0, fmt.Errorf("list connectors: %w", err)
	}
	for _, old := range all {
		if old.ID == c.ID && old.Bundled == c.Bundled {
			return max(old.Revision, 1), nil
		}
	}
	return 0, nil
}

// reservedNames begin the names of conformance connectors and of their
// connections (A180).
const reservedNames = "conformance-"

// reserved keeps the names of conformance connectors for those, and those
// without authority (A180, A242): their runs need nobody's approval.
func reserved(m *abi.Manifest, conformance bool) error {
	named := strings.HasPrefix(m.Name(), reservedNames) || strings.HasPrefix(strings.ToLower(m.ConnectorID), reservedNames)
	rule := ""
	switch {
	case named && !conformance:
		rule = "id_reserved"
	case !named && conformance:
		rule = "id_not_reserved"
	case !conformance:
		return nil
	case len(run.SecretFields(m)) > 0:
		rule = "conformance_secret"
	}
	for name := range m.Bindings {
		if name != abi.BindingInteractive && rule == "" {
			rule = "conformance_binding"
		}
	}
	if rule == "" {
		return nil
	}
	r := refusal("connector_invalid", errors.New("ids that begin with "+reservedNames+" are for the conformance connectors, which have no binding but interactive and no secret"))
	r.Details = map[string]any{"rule": rule}
	return r
}

func installEvent(a audit.Action, c store.Connector) audit.Event {
	return audit.Event{Action: a, Target: string(c.ID), Outcome: audit.Done,
		Details: []audit.Detail{audit.Version(c.Version), audit.Digest(string(c.Digest))}}
}

// ErrSuspicious: installing this needs the owner's second look (S141).
var ErrSuspicious = errors.New("needs confirmation")

// agreed asks for what S141 asks: the flag, and then a second yes.
func (o InstallOptions) agreed(why []string) error {
	if len(why) == 0 {
		return nil
	}
	reasons := strings.Join(why, "; ")
	if o.Force && o.Confirm != nil && o.Confirm(reasons) {
		return nil
	}
	next := "use --force if you mean it"
	if o.Force {
		next = "confirm it on a terminal, or with --yes"
	}
	r := refusal("connector_invalid", fmt.Errorf("%s: %w; %s", reasons, ErrSuspicious, next))
	r.Details = map[string]any{"rule": "suspicious", "doubts": why}
	return r
}

// suspicious says what an attacker who swaps modules would do: an older
// version, the same version with another module, a connector that could be
// taken for another's. Uninstalling is no way around it for a connector whose
// key is pinned.
func (h *Host) suspicious(ctx context.Context, c store.Connector) ([]string, error) {
	all, err := h.Store.Connectors(ctx)
	if err != nil {
		return nil, fmt.Errorf("list connectors: %w", err)
	}
	pins, err := h.Store.Pins(ctx)
	if err != nil {
		return nil, fmt.Errorf("list pinned keys: %w", err)
	}
	var why []string
	for _, old := range all {
		switch order := compareVersions(c.Version, old.Version); {
		case old.ID != c.ID:
			why = appendNew(why, mistakable(c, old.ID, old.Name, "installed"))
		case old.Digest == c.Digest:
		case order < 0:
			why = append(why, fmt.Sprintf("%s %s is installed; %s is older", old.Name, old.Version, c.Version))
		case order == 0:
			why = append(why, fmt.Sprintf("%s %s is installed with another module under the same version", old.Name, old.Version))
		}
	}
	for _, p := range pins {
		listed := slices.ContainsFunc(all, func(old store.Connector) bool { return old.ID == p.ConnectorID })
		if !listed && p.ConnectorID != c.ID {
			why = appendNew(why, mistakable(c, p.ConnectorID, p.Name, "pinned"))
		}
	}
	return why, nil
}

// mistakable says why c could be taken for a known connector: by its id, or by
// the name that both answer to.
func mistakable(c store.Connector, id store.ConnectorID, name, known string) string {
	switch {
	case skeleton(string(id)) == skeleton(string(c.ID)):
		return fmt.Sprintf("%s looks like the %s %s but is another connector", c.ID, known, id)
	case skeleton(name) == skeleton(c.Name):
		return fmt.Sprintf("%s would be called %s, which looks like the name of the %s %s", c.ID, c.Name, known, id)
	}
	return ""
}

func appendNew(why []string, reason string) []string {
	if reason == "" || slices.Contains(why, reason) {
		return why
	}
	return append(why, reason)
}

func (h *Host) modulePath(d store.Digest) string {
	return filepath.Join(h.DataDir, "modules", strings.TrimPrefix(string(d), "sha256:")+".wasm")
}

// keepModule writes the module's bytes under their digest, once.
func (h *Host) keepModule(l *Loaded) error {
	if h.DataDir == "" {
		return refusal("connector_invalid", errors.New("a memory: store keeps no modules; install into badger:DIR"))
	}
	path := h.modulePath(l.Connector.Digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep module: %w", err)
	}
	err := writeWhole(path, l.Wasm, 0o400)
	if err == nil {
		err = syncDir(h.DataDir) // the directory may be new
	}
	if err != nil {
		return fmt.Errorf("keep module: %w", err)
	}
	return nil
}

// Uninstall takes a connector off the list. Its connections and data stay.
func (h *Host) Uninstall(ctx context.Context, name string) error {
	c, ok, err := h.connector(ctx, name, false)
	if err != nil {
		return err
	}
	if !ok {
		return refusal("connector_not_runnable", fmt.Errorf("no connector %s is installed; sluice connectors lists those that are", name))
	}
	return h.uninstall(ctx, c)
}

func (h *Host) uninstall(ctx context.Context, c store.Connector) error {
	return h.audited(by(ctx, installEvent(audit.ConnectorUninstalled, c)), func() error { return h.Store.DeleteConnector(ctx, c.ID, c.Bundled) })
}

// connector looks a name up in one of the two sets as R17 does: the id, the name
// derived from it, then what a manifest adds.
func (h *Host) connector(ctx context.Context, key string, bundled bool, more ...string) (store.Connector, bool, error) {
	all, err := h.Store.Connectors(ctx)
	if err != nil {
		return store.Connector{}, false, fmt.Errorf("list connectors: %w", err)
	}
	for _, k := range append([]string{key, abi.SlugOf(key)}, more...) {
		for _, c := range all {
			if k != "" && c.Bundled == bundled && (string(c.ID) == k || c.Name == k) {
				return c, true, nil
			}
		}
	}
	return store.Connector{}, false, nil
}

// installed loads a connector from the data directory (R17, R18): of an installed
// and a bundled one, the one that has the fingerprint of the sidecar, else the installed
// one. One whose module is missing or changed gives way to the other.
func (h *Host) installed(ctx context.Context, name, sidecar string) (*Loaded, error) {
	var raw []byte
	var more []string
	var wanted string
	if sidecar != "" {
		var err error
		if raw, err = readSidecar(sidecar); err != nil {
			return nil, err
		}
		m, err := abi.ReadManifest(raw)
		if err != nil {
			return nil, manifestRefusal(err)
		}
		more, wanted = []string{m.ConnectorID, m.ConnectorKey}, fingerprint(m)
	}
	var found []store.Connector
	for _, bundled := range []bool{false, true} {
		c, ok, err := h.connector(ctx, name, bundled, more...)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return nil, refusal("connector_not_runnable", fmt.Errorf("no connector %s is installed, and there is no file or directory of that name; sluice connectors lists what is installed", name))
	}
	if len(found) == 2 && has(found[1], wanted) && !has(found[0], wanted) {
		slices.Reverse(found)
	}
	l, err := h.loadListed(found[0], raw)
	if err != nil && len(found) == 2 {
		if other, no := h.loadListed(found[1], raw); no == nil {
			return other, nil
		}
	}
	return l, err
}

// fingerprint is the version and the stream names in byte order (runtime.md §4).
func fingerprint(m *abi.Manifest) string {
	names := make([]string, len(m.Streams))
	for i, s := range m.Streams {
		names[i] = s.Name
	}
	slices.Sort(names)
	return fmt.Sprintf("%q %q", m.Version, names)
}

func has(c store.Connector, wanted string) bool {
	m, err := abi.ReadManifest(c.Manifest)
	return err == nil && fingerprint(m) == wanted
}

func prepareRefusal(err error) error {
	var f *sandbox.Failure
	if errors.As(err, &f) {
		return refusal(f.Code, err)
	}
	return refusal("connector_not_runnable", err)
}

// compareVersions orders dotted versions by number where both parts are
// numbers, else by text.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		var x, y string
		if i < len(as) {
			x = as[i]
		}
		if i < len(bs) {
			y = bs[i]
		}
		c := cmp.Compare(x, y)
		if isDigits(x) && isDigits(y) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			c = cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func isDigits(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}
