package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// A RestoreResult describes what was restored.
type RestoreResult struct {
	backup.Summary
	Disarmed
	DataDir string `json:"data_dir"`
	ID      string `json:"new_installation_id"`
}

// Restore restores a backup to the data directory of a store, which must be absent or empty. By default,
// schedules, destinations and keys are disarmed: a key may have been revoked since, and the original host may
// still run its schedules. See docs/spec/security.md, "Backup".
func Restore(ctx context.Context, url string, o RestoreOptions) (r RestoreResult, err error) {
	restrictUmask()
	d := &directory{Options: Options{Store: url}}
	_, err = d.locate()
	dir := d.DataDir
	switch {
	case err != nil:
		return r, err
	case dir == "":
		return r, ErrNoBackup
	}
	var target imager
	if d.Remote {
		d.filling = true
		if target, err = d.openEmpty(ctx); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, target.Close()) }()
	}
	var ids backup.Identities
	if o.Identity != "" {
		if ids, err = backup.ReadIdentities(o.Identity); err != nil {
			return r, err
		}
	}
	r.DataDir = dir
	r.Summary, err = backup.Restore(ctx, o.File, dir, ids, backup.UnpackApart, func(dir string) error {
		d := &directory{DataDir: dir}
		if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil { // for the owner's copy of the vault's key
			return err
		}
		if r.Disarmed, err = disarm(ctx, dir, o); err != nil {
			return err
		}
		err := d.identify() // a new id, since the original installation may still exist
		if r.ID = d.ID; err != nil {
			return err
		}
		if err := d.Audit(audit.Event{Action: audit.BackupRestored, Target: filepath.Base(o.File), Outcome: audit.Done}); err != nil || target == nil {
			return err
		}
		return handOver(ctx, dir, target)
	})
	return r, err
}

// openEmpty opens the database to which a backup is restored, and refuses one that is not empty.
func (d *directory) openEmpty(ctx context.Context) (imager, error) {
	if names, err := os.ReadDir(d.DataDir); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("restore to %s: %w; name another data directory with data=DIR in the URL", d.DataDir, backup.ErrNotEmpty)
	}
	url, err := d.locate()
	if err != nil {
		return nil, err
	}
	s, err := drivers.Open(url, drivers.Options{})
	if err != nil {
		return nil, err
	}
	target, ok := s.(imager)
	if !ok {
		return nil, errors.Join(ErrNoBackup, s.Close())
	}
	f, at, err := target.Fill(ctx, "")
	if err == nil {
		f.Close()
	}
	var other *store.OtherCopyError
	if errors.Is(err, store.ErrNotEmpty) || errors.As(err, &other) || at.Kind != 0 {
		err = fmt.Errorf("restore to %s: %w: there is something in the database, and a backup is never merged; name another schema with schema=NAME, or empty this one with DROP SCHEMA … CASCADE", drivers.Shown(url), backup.ErrNotEmpty)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return target, nil
}

// handOver copies the store of a directory that was just unpacked to a server, and removes it from the
// directory.
func handOver(ctx context.Context, dir string, target imager) error {
	s, err := unpackOpener.Open(dir)
	if err != nil {
		return err
	}
	_, err = store.CopyStore(ctx, s, target, func(store.CopyProgress) {})
	if err := errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("copy the restored store: %w", err)
	}
	for _, name := range storesOwn {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Backups lists the backups made of a store, oldest first.
func Backups(url string) ([]backup.Entry, error) {
	dir, err := DataDir(url)
	if err == nil && dir == "" {
		err = ErrNoBackup
	}
	if err != nil {
		return nil, err
	}
	return backup.List(dir)
}

// unpackOpener opens stores for the process that unpacks a backup. The clock of these stores stands still, so
// that documents that expired since the backup was made are not removed.
var unpackOpener = backup.Opener{
	Open: func(dir string) (backup.Store, error) {
		s, err := drivers.Open("badger:"+dir, drivers.Options{AllowNetworkFS: true, Now: func() time.Time { return time.Unix(0, 0) }}) // checked later
		if err != nil {
			return nil, err
		}
		if limit := store.MemoryLimit(s); limit > 0 {
			debug.SetMemoryLimit(limit)
		}
		if d := store.Damage(s); d != nil {
			return nil, errors.Join(d, s.Close())
		}
		copied, ok := s.(backup.Store)
		if !ok {
			return nil, errors.Join(ErrNoBackup, s.Close())
		}
		return copied, nil
	},
	Room: roomFor,
}

// roomFor refuses to write a number of bytes to a directory if too little space would be left to start runs.
func roomFor(dir string, bytes int64) error {
	free, known := freeSpace(dir)
	if need := uint64(bytes) + spaceStart; known && free < need {
		return fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed; free some disk space and try again", store.ErrNoSpace, free/abi.MiB, dir, need/abi.MiB)
	}
	return nil
}
