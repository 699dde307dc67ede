package app

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/backup"
)

// recipients returns who can decrypt the backup, nil if it is plain. fresh is the recipient of a new identity.
func (bs *backups) recipients(q host.NewBackup) (to backup.Recipients, fresh string, err error) {
	kept, err := backup.ReadRecipients(bs.DataDir)
	if err != nil {
		return nil, "", err
	}
	given, err := backup.ParseRecipients(q.To)
	if err != nil {
		return nil, "", err
	}
	if q.Plain {
		switch {
		case len(given) > 0 || q.NewIdentity != "":
			return nil, "", fmt.Errorf("%w: it is for recipients or --plain, not both", ErrBackupChoice)
		case len(kept) > 0:
			return nil, "", fmt.Errorf(
				"%w: backups of %s are for the recipients in backup.recipients there; move that file away if they shall be plain",
				ErrBackupChoice, bs.DataDir)
		}
		return nil, "", nil
	}
	if q.NewIdentity != "" {
		if err := bs.checkOutside(q.NewIdentity); err != nil {
			return nil, "", err
		}
		if fresh, err = backup.NewIdentity(bs.DataDir, q.NewIdentity); err != nil {
			return nil, "", err
		}
		if kept, err = backup.ReadRecipients(bs.DataDir); err != nil {
			return nil, "", err
		}
	}
	if to = append(kept, given...); len(to) == 0 {
		return nil, "", fmt.Errorf(
			"%w: a backup is encrypted to somebody: let --new-identity FILE make a key, give one of age-keygen's with --to age1…, or list some in %s",
			backup.ErrRecipient, filepath.Join(bs.DataDir, "backup.recipients"))
	}
	return to, fresh, nil
}

// checkOutside refuses an identity file inside the data directory, whose backups it opens.
func (bs *backups) checkOutside(path string) error {
	abs, err := filepath.Abs(path)
	if err == nil {
		if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(real, filepath.Base(abs))
		}
	}
	data, err2 := filepath.EvalSymlinks(bs.DataDir)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if rel, err := filepath.Rel(data, abs); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%w: %s is in the data directory; an identity beside what it protects is no use",
			ErrBackupChoice, path)
	}
	return nil
}
