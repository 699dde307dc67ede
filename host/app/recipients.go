package app

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sluicehost/sluice/host/backup"
)

// recipients settles who can open the backup; nobody in particular if it is
// plain.
func (ar *archiver) recipients(o BackupOptions) (to backup.Recipients, fresh string, err error) {
	kept, err := backup.ReadRecipients(ar.DataDir)
	if err != nil {
		return nil, "", err
	}
	given, err := backup.ParseRecipients(o.To)
	if err != nil {
		return nil, "", err
	}
	if o.Plain {
		switch {
		case len(given) > 0 || o.NewIdentity != "":
			return nil, "", fmt.Errorf("%w: it is for recipients or --plain, not both", ErrBackupChoice)
		case len(kept) > 0:
			return nil, "", fmt.Errorf("%w: backups of %s are for the recipients in backup.recipients there; move that file away if they shall be plain", ErrBackupChoice, ar.DataDir)
		}
		return nil, "", nil
	}
	if o.NewIdentity != "" {
		if err := ar.checkOutside(o.NewIdentity); err != nil {
			return nil, "", err
		}
		if fresh, err = backup.NewIdentity(ar.DataDir, o.NewIdentity); err != nil {
			return nil, "", err
		}
		if kept, err = backup.ReadRecipients(ar.DataDir); err != nil {
			return nil, "", err
		}
	}
	if to = append(kept, given...); len(to) == 0 {
		return nil, "", fmt.Errorf("%w: a backup is encrypted to somebody: let --new-identity FILE make a key, give one of age-keygen's with --to age1…, or list some in %s",
			backup.ErrRecipient, filepath.Join(ar.DataDir, "backup.recipients"))
	}
	return to, fresh, nil
}

// checkOutside refuses to keep what opens the backups beside what is backed up.
func (ar *archiver) checkOutside(path string) error {
	abs, err := filepath.Abs(path)
	if err == nil {
		if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(real, filepath.Base(abs))
		}
	}
	data, err2 := filepath.EvalSymlinks(ar.DataDir)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if rel, err := filepath.Rel(data, abs); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%w: %s is in the data directory; an identity beside what it protects is no use", ErrBackupChoice, path)
	}
	return nil
}
