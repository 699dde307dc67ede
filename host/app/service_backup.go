package app

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/backup"
)

// Backup implements host.Backups.
func (s *Service) Backup(ctx context.Context, q host.NewBackup) (host.Backup, error) {
	for path, name := range map[string]string{q.Out: "out", q.NewIdentity: "newIdentity"} {
		if path != "" && !filepath.IsAbs(path) {
			return host.Backup{}, invalid(name, "absolute path", "want an absolute path")
		}
	}
	r, err := s.host.Backup(ctx, BackupOptions{To: q.To, NewIdentity: q.NewIdentity, Plain: q.Plain, Out: q.Out, NoDrill: q.NoDrill})
	switch {
	case errors.Is(err, ErrBackupBusy):
		return host.Backup{}, host.Refuse("conflict", "%v", err)
	case errors.Is(err, ErrNoBackup), errors.Is(err, ErrBackupChoice), errors.Is(err, backup.ErrRecipient), errors.Is(err, backup.ErrExists):
		return host.Backup{}, host.Refuse("validation_error", "%v", err)
	case err != nil:
		return host.Backup{}, asked(err)
	}
	return host.Backup{
		File: r.File, Created: r.Created, Size: r.Size, SHA256: r.SHA256, Encrypted: r.Encrypted, Verified: r.Verified, Records: r.Records,
		Streams: r.Streams, Modules: r.Modules, Secrets: r.Secrets, Recipient: r.Recipient,
	}, nil
}
