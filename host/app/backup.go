package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// backups implements host.Backups. It makes one backup of the data directory at a time.
type backups struct {
	*directory
	backing sync.Mutex // held while a backup is made
}

var _ host.Backups = (*backups)(nil)

var (
	// ErrNoBackup is returned for a store in memory, which has nothing to back up.
	ErrNoBackup = errors.New("a memory: store keeps nothing; name another with --store badger:DIR")
	// ErrBackupChoice is returned for options that exclude each other.
	ErrBackupChoice = errors.New("cannot make this backup")
	// ErrBackupBusy is returned while another backup is being made.
	ErrBackupBusy = errors.New("another backup is being made; wait until it is done")
)

// Backup implements host.Backups.
func (bs *backups) Backup(ctx context.Context, q host.NewBackup) (host.Backup, error) {
	for path, name := range map[string]string{q.Out: "out", q.NewIdentity: "newIdentity"} {
		if path != "" && !filepath.IsAbs(path) {
			return host.Backup{}, invalid(name, "absolute path", "want an absolute path")
		}
	}
	b, err := bs.makeBackup(ctx, q)
	switch {
	case errors.Is(err, ErrBackupBusy):
		return host.Backup{}, host.Refuse("conflict", "%v", err)
	case errors.Is(err, ErrNoBackup), errors.Is(err, ErrBackupChoice), errors.Is(err, backup.ErrRecipient),
		errors.Is(err, backup.ErrExists):
		return host.Backup{}, host.Refuse("validation_error", "%v", err)
	case err != nil:
		return host.Backup{}, asRefusal(err)
	}
	return b, nil
}

// makeBackup writes the store, modules and sealed secrets as of one commit into one file, from which the host
// can be restored elsewhere. The key of the secrets is not in it. Unless NoDrill is set, the backup is restored
// once to verify it. The store may be in use.
func (bs *backups) makeBackup(ctx context.Context, q host.NewBackup) (host.Backup, error) {
	if bs.DataDir == "" {
		return host.Backup{}, ErrNoBackup
	}
	if !bs.backing.TryLock() {
		return host.Backup{}, ErrBackupBusy
	}
	defer bs.backing.Unlock()
	if bs.ID == "" { // the host was opened for the store alone
		if err := bs.identify(); err != nil {
			return host.Backup{}, err
		}
	}
	dir := backup.Dir(bs.DataDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return host.Backup{}, fmt.Errorf("make place for backups: %w", err)
	}
	now := time.Now()
	path := backupPath(q, dir, now)
	if err := backup.Sweep(bs.DataDir, filepath.Dir(path), bs.ID); err != nil {
		return host.Backup{}, fmt.Errorf("clear what a backup that was cut off left: %w", err)
	}
	to, fresh, err := bs.recipients(q)
	if err != nil {
		return host.Backup{}, err
	}
	r, err := bs.writeBackup(ctx, path, to, q.NoDrill, now)
	r.Recipient = fresh
	if err != nil {
		return r, err
	}
	entry := backup.Entry{
		File: r.File, Created: r.Created, Size: r.Size, SHA256: r.SHA256, Encrypted: r.Encrypted,
		Verified: r.Verified, Records: r.Records,
	}
	if err := backup.Note(bs.DataDir, entry); err != nil {
		return r, err
	}
	return r, bs.Audit(by(ctx, audit.Event{Action: audit.BackupMade, Target: filepath.Base(path), Outcome: audit.Done}))
}

func backupPath(q host.NewBackup, dir string, now time.Time) string {
	if q.Out != "" {
		return q.Out
	}
	ext := ".age"
	if q.Plain {
		ext = ".tar"
	}
	return filepath.Join(dir, "sluice-"+now.UTC().Format("20060102T150405Z")+ext)
}

func (bs *backups) writeBackup(ctx context.Context, path string, to backup.Recipients, noDrill bool,
	now time.Time) (r host.Backup, err error) {
	plan, done, err := bs.pinAll(ctx, now)
	if err != nil {
		return r, err
	}
	defer done()
	if free, known := freeSpace(filepath.Dir(path)); known && free < uint64(plan.Size()) {
		return r, fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed", store.ErrNoSpace, free/abi.MiB, path,
			plan.Size()/abi.MiB)
	}
	order := backup.Order{Path: path, To: to, Fault: fault, Room: func() error { return roomFor(bs.DataDir, 0) }}
	if !noDrill {
		order.Drill = func(ctx context.Context, archive io.Reader) error { return bs.drill(ctx, archive, plan.Digest()) }
	}
	w, err := backup.Create(ctx, plan, order)
	if err != nil {
		return r, err
	}
	s := plan.Manifest.Summary()
	return host.Backup{
		File: path, Created: s.Created, Size: w.Size, SHA256: w.SHA256, Encrypted: len(to) > 0,
		Verified: !noDrill, Records: s.Records, Streams: s.Streams, Modules: s.Modules, Secrets: s.Secrets,
	}, nil
}

// pinAll pins all that is backed up, until done is called.
func (bs *backups) pinAll(ctx context.Context, now time.Time) (p *backup.Plan, done func(), err error) {
	image, secrets, err := bs.pin(ctx)
	if err != nil {
		return nil, nil, notBackedUp(err)
	}
	p, err = backup.Prepare(ctx, backup.Source{
		Image: image, Secrets: secrets, Modules: filepath.Join(bs.DataDir, "modules"),
		Version: ThisVersion().Version, Installation: bs.ID, Now: now,
	})
	if err != nil {
		image.Close()
		return nil, nil, notBackedUp(err)
	}
	return p, image.Close, nil
}

// pin takes the store and its secrets as of one instant: no secret changes while the store is pinned. Modules
// need no pin, since they are written before the store names them and are never changed.
func (bs *backups) pin(ctx context.Context) (image store.Image, secrets []vault.File, err error) {
	s, ok := bs.Store.(store.Imager)
	if !ok {
		return nil, nil, ErrNoBackup
	}
	v, err := vault.Open(bs.DataDir)
	if err != nil {
		return nil, nil, err
	}
	// The first image may have to wait for an erasure. It is taken before secrets are locked.
	if image, err = s.Image(ctx); err != nil {
		return nil, nil, err
	}
	secrets, err = v.Sealed(func() (err error) {
		if image != nil {
			image.Close()
		}
		image, err = s.Image(ctx)
		return err
	})
	if err != nil && image != nil {
		image.Close()
	}
	return image, secrets, err
}

// notBackedUp explains why a damaged store is not backed up. A backup would hide the damage.
func notBackedUp(err error) error {
	var damage *store.DamageError
	if errors.As(err, &damage) {
		return fmt.Errorf(
			"%w; a damaged store is not backed up: restore an earlier backup with sluice restore, or see sluice doctor --deep",
			err)
	}
	return err
}

// drill restores an archive to a temporary directory, and checks that its digest is the given one.
func (bs *backups) drill(ctx context.Context, archive io.Reader, digest string) error {
	dir, err := os.MkdirTemp(backup.Dir(bs.DataDir), ".tmp-drill-")
	if err != nil {
		return err
	}
	_, got, err := backup.UnpackApart(ctx, archive, dir, nil)
	if err == nil && got != digest {
		err = fmt.Errorf("%w: another backup was read than was written", backup.ErrRefused)
	}
	return errors.Join(err, os.RemoveAll(dir))
}
