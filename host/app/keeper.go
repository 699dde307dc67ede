package app

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/host/vault"
)

// vault returns where secrets are kept: the data directory, or the shared store if hosts share one.
func (d *directory) vault() (vault.Keeper, error) {
	if d.shared != nil {
		return d.shared, nil
	}
	return vault.Open(d.DataDir)
}

// joinVault joins the shared vault or asks to be admitted. The error says why this host is not admitted; it can
// do whatever needs no secret.
func (d *directory) joinVault(ctx context.Context) error {
	if err := d.shared.Join(ctx); err != nil {
		return err
	}
	left, err := d.shared.TakeIn()
	for _, e := range left {
		d.Options.Log.Warn("secret_left", "connection", e.Connection, "secret", e.Name, "why",
			"all hosts have another one, which counts; this host's own stays in its data directory")
	}
	if err != nil {
		d.Options.Log.Error("secrets_not_moved", "error", err)
	}
	return nil
}

// leaveVault moves secrets back to the data directory from a store that was shared when it was copied.
func (d *directory) leaveVault(ctx context.Context) error {
	own, err := vault.Open(d.DataDir)
	if err != nil {
		return err
	}
	return vault.NewShared(own, d.Store, d.ID).GiveBack(ctx)
}

// closed reports whether an error means that the vault as a whole is closed to this host.
func closed(err error) bool {
	return errors.Is(err, vault.ErrNotAdmitted) || errors.Is(err, vault.ErrRolledBack)
}
