package app

import (
	"context"
	"encoding/json"
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
// still run its schedules. A restore that was interrupted is finished by the next one of the same backup. See
// docs/spec/security.md, "Backup".
func Restore(ctx context.Context, url string, o RestoreOptions) (r RestoreResult, err error) {
	restrictUmask()
	d := &directory{Options: Options{Store: url}}
	url, err = d.address()
	switch {
	case err != nil:
		return r, err
	case d.DataDir == "":
		return r, ErrNoBackup
	}
	b := backup.Restoration{File: o.File, Dir: d.DataDir, Unpack: backup.UnpackApart, Fault: fault,
		Finish: func(dir string, s backup.Summary) (json.RawMessage, error) {
			r, err := finish(ctx, dir, o)
			if err != nil {
				return nil, err
			}
			r.Summary, r.DataDir = s, d.DataDir
			return json.Marshal(r)
		}}
	if d.Remote {
		var target *copyTarget
		if target, err = d.openEmpty(ctx, url); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, target.Close()) }()
		b.HandOver = func(dir string) error { return handOver(ctx, dir, target) }
	}
	if o.Identity != "" {
		if b.Identities, err = backup.ReadIdentities(o.Identity); err != nil {
			return r, err
		}
	}
	text, err := b.Restore(ctx)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// finish makes an installation of its own of a directory that was just unpacked.
func finish(ctx context.Context, dir string, o RestoreOptions) (r RestoreResult, err error) {
	d := &directory{DataDir: dir}
	if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil { // for the owner's copy of the vault's key
		return r, err
	}
	if r.Disarmed, err = disarm(ctx, dir, o); err != nil {
		return r, err
	}
	if err := d.identify(); err != nil { // a new id, since the original installation may still exist
		return r, err
	}
	r.ID = d.ID
	return r, d.Audit(audit.Event{Action: audit.BackupRestored, Target: filepath.Base(o.File), Outcome: audit.Done})
}

// openEmpty opens the database to which a backup is restored. It refuses one that is not empty, unless it may be what
// an earlier restore to this data directory was interrupted at, which handOver finds out.
func (d *directory) openEmpty(ctx context.Context, url string) (*copyTarget, error) {
	begun := backup.Begun(d.DataDir)
	if names, err := os.ReadDir(d.DataDir); err == nil && len(names) > 0 && !begun {
		return nil, fmt.Errorf("restore to %s: %w; name another data directory with data=DIR in the URL",
			d.DataDir, backup.ErrNotEmpty)
	}
	t := &copyTarget{url: url, open: func() (imager, error) {
		s, err := drivers.Open(url, drivers.Options{Self: store.Member{ID: fillerID}})
		if err != nil {
			return nil, err
		}
		return asImager(s, url)
	}}
	var err error
	if t.imager, err = t.open(); err != nil {
		return nil, err
	}
	f, _, err := t.Fill(ctx, "")
	if err == nil {
		f.Close()
	}
	var unfinished *store.OtherCopyError
	switch {
	case errors.As(err, &unfinished), errors.Is(err, store.ErrNotEmpty) && begun:
		err = nil
	case errors.Is(err, store.ErrNotEmpty):
		err = fmt.Errorf("restore to %s: %w: there is something in the database, and a backup is never merged; name another schema with schema=NAME, or empty this one with DROP SCHEMA … CASCADE", drivers.Shown(url), backup.ErrNotEmpty)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// handOver copies the store of a directory that was just unpacked to a server, and removes it from the
// directory. If it is interrupted, the next call goes on.
func handOver(ctx context.Context, dir string, target *copyTarget) error {
	db, gone := filepath.Join(dir, "db"), filepath.Join(dir, "db.handed-over")
	if _, err := os.Stat(db); err == nil {
		s, err := unpackOpener.Open(dir)
		if err != nil {
			return err
		}
		_, err = target.fill(ctx, s, func(store.CopyProgress) {})
		if err := errors.Join(err, s.Close()); err != nil {
			return fmt.Errorf("copy the restored store: %w", err)
		}
		err = fault("restore.copied")
		if err == nil {
			err = errors.Join(os.Rename(db, gone), syncDir(dir))
		}
		if err == nil {
			err = fault("restore.removing")
		}
		if err != nil {
			return err
		}
	}
	for _, name := range append([]string{filepath.Base(gone)}, storesOwn...) {
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
		// checked later
		s, err := drivers.Open("badger:"+dir,
			drivers.Options{AllowNetworkFS: true, Now: func() time.Time { return time.Unix(0, 0) }})
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
		return fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed; free some disk space and try again",
			store.ErrNoSpace, free/abi.MiB, dir, need/abi.MiB)
	}
	return nil
}
