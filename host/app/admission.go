package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// purposeKey is the purpose for which the vault signs the public key of a host.
const purposeKey = "key of a host"

// opensVault reports whether a host claims to be admitted to the vault. Anyone who relies on it must verify the
// code; see keyOf.
func opensVault(m store.Member) bool { return len(m.KeyCode) > 0 }

// keyText returns the text that the code of a member's key signs.
func keyText(epoch string, key []byte) []byte { return append([]byte(epoch+"\x00"), key...) }

// watchVault joins the vault as soon as the owner admits this host, and looks at every change of the vault, so
// that no older state is accepted later. It returns when ctx ends or this host is removed from the members.
func (hs *hosts) watchVault(ctx context.Context) {
	wake, stop := hs.members.Changed(store.Vault)
	defer stop()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	key := keyText(hs.Epoch, hs.peers.key.PublicKey().Bytes())
	refused := errors.New("not joined yet") // why this host is not admitted, nil if it is
	for {
		code, err := hs.shared.Sign(ctx, purposeKey, key)
		if err != nil || refused != nil {
			was := refused
			if refused = hs.joinVault(ctx); refused == nil {
				code, err = hs.shared.Sign(ctx, purposeKey, key)
				if err = cmp.Or(err, hs.runs.wake(ctx)); err != nil && ctx.Err() == nil {
					hs.Options.Log.Error("waiting_runs_not_taken", "error", err)
				}
			} else if ctx.Err() == nil && (was == nil || was.Error() != refused.Error()) { // once, not with every tick
				hs.Options.Log.Warn("vault_closed", "error", refused)
			}
		}
		hs.announceCode(ctx, code)
		select {
		case <-wake:
		case <-tick.C:
		case <-hs.members.Removed():
			return
		case <-ctx.Done():
			return
		}
	}
}

// announceCode publishes whether this host is admitted.
func (hs *hosts) announceCode(ctx context.Context, code []byte) {
	hs.mu.Lock()
	same := bytes.Equal(hs.about.KeyCode, code)
	hs.mu.Unlock()
	if same {
		return
	}
	if err := hs.Announce(ctx, func(a *store.About) { a.KeyCode = code }); err != nil && ctx.Err() == nil {
		hs.Options.Log.Error("admission_not_announced", "error", err)
	}
}

// keyOf returns the public key of a member after verifying that an admitted host signed it.
func (hs *hosts) keyOf(ctx context.Context, m *store.Member) ([]byte, error) {
	if !opensVault(*m) {
		return nil, host.Refuse("unavailable",
			"host %s is not admitted to the vault, so nothing can be sent to it; ask there, or admit it with sluice hosts admit",
			m.ID)
	}
	genuine, err := hs.shared.Signed(ctx, purposeKey, keyText(m.Epoch, m.Key), m.KeyCode)
	if closed(err) {
		return nil, host.Refuse("unavailable", "%v", err)
	}
	if err == nil && !genuine {
		err = host.Refuse("unavailable",
			"the key that the database has of host %s is not from a host that is admitted to the vault; ask host %s itself, and if this stays look who can write the database", m.ID, m.ID)
	}
	return m.Key, err
}

// vaultOf returns the vault of hosts that share a store, or a conflict for a host that shares none.
func (hs *hosts) vaultOf() (*vault.Shared, error) {
	if hs.shared == nil {
		return nil, host.Refuse("conflict", "this host has its store to itself, and its vault with it")
	}
	return hs.shared, nil
}

// AdmittedHosts implements host.Hosts.
func (hs *hosts) AdmittedHosts(ctx context.Context) ([]host.AdmittedHost, error) {
	out := []host.AdmittedHost{}
	if hs.shared == nil {
		return append(out, host.AdmittedHost{HostID: hs.ID, AdmittedAt: hs.started.UTC()}), nil
	}
	all, err := hs.shared.Admitted(ctx)
	for id, at := range all {
		out = append(out, host.AdmittedHost{HostID: id, AdmittedAt: at})
	}
	slices.SortFunc(out, func(a, b host.AdmittedHost) int { return cmp.Compare(a.HostID, b.HostID) })
	return out, hs.refusedByVault(err)
}

// AdmissionCode implements host.Hosts.
func (hs *hosts) AdmissionCode(ctx context.Context) (string, error) {
	v, err := hs.vaultOf()
	if err != nil {
		return "", err
	}
	if err := v.Join(ctx); err == nil {
		return "", host.Refuse("conflict", "this host is admitted already")
	} else if !errors.Is(err, vault.ErrNotAdmitted) {
		return "", hs.refusedByVault(err)
	}
	return v.Code()
}

// AdmitHost implements host.Hosts.
func (hs *hosts) AdmitHost(ctx context.Context, id, code string) error {
	return hs.withVault(ctx, audit.HostAdmitted, id, func(v *vault.Shared) error { return v.Admit(ctx, id, code) })
}

// RemoveHost implements host.Hosts. Journals of runs that begin from now on are sealed with a key that the
// removed host never had.
func (hs *hosts) RemoveHost(ctx context.Context, id string) error {
	return hs.withVault(ctx, audit.HostRemoved, id, func(v *vault.Shared) error {
		if err := v.Expel(ctx, id); err != nil {
			return err
		}
		return hs.renewJournalSecret()
	})
}

// RotateVault implements host.Hosts.
func (hs *hosts) RotateVault(ctx context.Context) error {
	return hs.withVault(ctx, audit.VaultRotated, "vault", func(v *vault.Shared) error { return v.Rotate(ctx) })
}

// AcceptVault implements host.Hosts.
func (hs *hosts) AcceptVault(ctx context.Context) error {
	return hs.withVault(ctx, audit.VaultAccepted, "vault", func(v *vault.Shared) error { return v.Accept(ctx) })
}

// withVault performs a change of the vault and records it in the audit log.
func (hs *hosts) withVault(ctx context.Context, action audit.Action, target string,
	do func(*vault.Shared) error) error {
	v, err := hs.vaultOf()
	if err != nil {
		return err
	}
	e := by(ctx, audit.Event{Action: action, Target: abi.Cut(abi.Clean(target), 80), Outcome: audit.Done})
	return hs.refusedByVault(hs.audited(e, func() error { return do(v) }))
}

// refusedByVault turns those errors of the vault that the owner can act on into a host.Refusal.
func (hs *hosts) refusedByVault(err error) error {
	switch {
	case closed(err):
		return host.Refuse("unavailable", "%v", err)
	case errors.Is(err, vault.ErrCode), errors.Is(err, vault.ErrInvalid):
		return host.Refuse("conflict", "%v", err)
	}
	return err
}
