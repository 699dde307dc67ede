package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/signature"
	"github.com/sluicehost/sluice/store"
)

// installer lists and unlists connectors.
type installer struct {
	*directory
	modules    *modules
	publishers *publishers
	guests     *guests
	listing    sync.Mutex // held while a connector is listed
}

// InstallOptions are the owner's choices for an install.
type InstallOptions struct {
	// Signature is the signature of the module, nil for none.
	Signature *signature.Signature
	// Key is the only accepted key. The zero value means the pinned one or, on first use, the one that the
	// signature carries.
	Key signature.PublicKey
	// RequireSignature refuses an unsigned module.
	RequireSignature bool
	// Force and Confirm are both needed to install a suspicious module. Confirm gets the reasons in one
	// sentence; nil declines.
	Force   bool
	Confirm func(why string) bool
	// Conformance installs a connector of the conformance suite, under its reserved id.
	Conformance bool
}

// An Installed is an installed connector and what its signature changed.
type Installed struct {
	Connector store.Connector
	// Pinned reports whether this install pinned the key.
	Pinned bool
	// FirstUse reports whether the key was pinned on first use, without being named.
	FirstUse bool
	// Replaced is the key that was pinned before, nil for none.
	Replaced *store.Signer
}

// Install verifies the signature of a module, stores the module under its digest, compiles it, and lists the
// connector. It grants nothing. A module that looks like a replacement by an attacker is refused unless the
// install is forced and confirmed. A pinned key stays pinned after an uninstall.
func (in *installer) Install(ctx context.Context, l *Loaded, o InstallOptions) (Installed, error) {
	if err := in.checkSpace(); err != nil {
		return Installed{}, err
	}
	if err := checkReserved(l.Manifest, o.Conformance); err != nil {
		return Installed{}, err
	}
	before, err := in.revision(ctx, l.Connector)
	if err != nil {
		return Installed{}, err
	}
	t, err := in.publishers.trust(ctx, l, o)
	if err != nil {
		return Installed{}, err
	}
	why, err := in.suspicious(ctx, l.Connector)
	if err != nil {
		return Installed{}, err
	}
	if err := o.confirm(append(t.doubts, why...)); err != nil {
		e := by(ctx, installEvent(audit.PolicyRefused, l.Connector))
		e.Outcome = audit.Refused
		return Installed{}, errors.Join(err, in.Audit(e))
	}
	if _, err := in.guests.Sandbox.Prepare(ctx, l.Module, l.Wasm); err != nil {
		return Installed{}, prepareRefusal(err)
	}
	if err := in.modules.keepModule(ctx, l); err != nil {
		return Installed{}, err
	}
	l.Connector.InstalledAt, l.Connector.Signer, l.Connector.Conformance = time.Now(), t.signer, o.Conformance
	done := Installed{Connector: l.Connector, Pinned: t.pins, Replaced: t.replaces,
		FirstUse: t.pins && t.replaces == nil && o.Key == signature.PublicKey{}}
	in.listing.Lock()
	defer in.listing.Unlock()
	if now, err := in.revision(ctx, l.Connector); err != nil || now != before {
		return Installed{}, cmp.Or(err,
			error(refusal("conflict", errors.New("another module of this connector was installed meanwhile; look again"))))
	}
	l.Connector.Revision = before + 1
	done.Connector = l.Connector
	if t.pins { // before the connector, so that a crash in between leaves no connector without its pin
		pin := store.Pin{ConnectorID: l.Connector.ID, Name: l.Connector.Name, Signer: *t.signer,
			PinnedAt: l.Connector.InstalledAt}
		if err := in.Store.PutPin(ctx, pin); err != nil {
			return Installed{}, fmt.Errorf("pin key: %w", err)
		}
	}
	return done, in.audited(by(ctx, installEvent(audit.ConnectorInstalled, l.Connector)),
		func() error { return in.Store.PutConnector(ctx, l.Connector) })
}

// revision returns how many modules a connector has had; 0 means none.
func (in *installer) revision(ctx context.Context, c store.Connector) (uint64, error) {
	all, err := in.Store.Connectors(ctx)
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

// reservedNames is the prefix of the names of conformance connectors and their connections.
const reservedNames = "conformance-"

// checkReserved reserves the names of conformance connectors, and refuses secrets and bindings to those
// connectors, because their runs need no approval.
func checkReserved(m *abi.Manifest, conformance bool) error {
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
	r := refusal("connector_invalid",
		errors.New("ids that begin with "+reservedNames+
			" are for the conformance connectors, which have no binding but interactive and no secret"))
	r.Details = map[string]any{"rule": rule}
	return r
}

func installEvent(a audit.Action, c store.Connector) audit.Event {
	return audit.Event{Action: a, Target: string(c.ID), Outcome: audit.Done,
		Details: []audit.Detail{audit.Version(c.Version), audit.Digest(string(c.Digest))}}
}

// ErrSuspicious is returned for a module that the owner has to confirm.
var ErrSuspicious = errors.New("needs confirmation")

// confirm accepts doubts only if Force is set and Confirm returns true.
func (o InstallOptions) confirm(why []string) error {
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

// uninstall unlists a connector. Its connections and data are kept.
func (in *installer) uninstall(ctx context.Context, c store.Connector) error {
	return in.audited(by(ctx, installEvent(audit.ConnectorUninstalled, c)),
		func() error { return in.Store.DeleteConnector(ctx, c.ID, c.Bundled) })
}
