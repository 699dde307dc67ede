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

// archiver makes backups of the data directory, one at a time.
type archiver struct {
	*directory
	backing sync.Mutex // held while a backup is made
}

// backups implements host.Backups.
type backups struct{ archiver *archiver }

var _ host.Backups = (*backups)(nil)

var (
	// ErrNoBackup: a store in memory has nothing to back up.
	ErrNoBackup = errors.New("a memory: store keeps nothing; name another with --store badger:DIR")
	// ErrBackupChoice: what was asked for does not go together.
	ErrBackupChoice = errors.New("cannot make this backup")
	// ErrBackupBusy: another one is being made.
	ErrBackupBusy = errors.New("another backup is being made; wait until it is done")
)

// BackupOptions say where a backup goes and who can open it.
type BackupOptions struct {
	To          []string // recipients beside those of DATA/backup.recipients
	NewIdentity string   // a file to make for a fresh identity, whose recipient is kept in DATA/backup.recipients
	Plain       bool     // for everybody to read
	Out         string   // "" is a name in DATA/backups
	NoDrill     bool     // leave it unverified
}

// BackupResult is a backup that was made.
type BackupResult struct {
	backup.Entry
	Streams   int    `json:"streams"`
	Modules   int    `json:"modules"`
	Secrets   int    `json:"secrets"`
	Recipient string `json:"recipient,omitempty"` // of NewIdentity
}

// Backup writes store, modules and sealed secrets into one file, enough to go on elsewhere. The
// key of the secrets is not in it. Unless NoDrill is set, the backup is restored once, to prove
// it. The store may be in use: the backup is everything as of one commit.
func (ar *archiver) Backup(ctx context.Context, o BackupOptions) (BackupResult, error) {
	if ar.DataDir == "" {
		return BackupResult{}, ErrNoBackup
	}
	if !ar.backing.TryLock() {
		return BackupResult{}, ErrBackupBusy
	}
	defer ar.backing.Unlock()
	if ar.ID == "" { // of a host that was opened for the store alone
		if err := ar.identify(); err != nil {
			return BackupResult{}, err
		}
	}
	dir := backup.Dir(ar.DataDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return BackupResult{}, fmt.Errorf("make place for backups: %w", err)
	}
	if err := backup.Sweep(dir); err != nil {
		return BackupResult{}, fmt.Errorf("clear what a backup that was cut off left: %w", err)
	}
	to, fresh, err := ar.recipients(o)
	if err != nil {
		return BackupResult{}, err
	}
	now := time.Now()
	path, err := o.path(dir, now)
	if err != nil {
		return BackupResult{}, err
	}
	r, err := ar.writeBackup(ctx, path, to, o.NoDrill, now)
	r.Recipient = fresh
	if err != nil {
		return r, err
	}
	if err := backup.Note(ar.DataDir, r.Entry); err != nil {
		return r, err
	}
	return r, ar.Audit(by(ctx, audit.Event{Action: audit.BackupMade, Target: filepath.Base(path), Outcome: audit.Done}))
}

func (o BackupOptions) path(dir string, now time.Time) (string, error) {
	if o.Out != "" {
		abs, err := filepath.Abs(o.Out)
		if err != nil {
			return "", fmt.Errorf("--out: %w", err)
		}
		return abs, nil
	}
	ext := ".age"
	if o.Plain {
		ext = ".tar"
	}
	return filepath.Join(dir, "sluice-"+now.UTC().Format("20060102T150405Z")+ext), nil
}

func (ar *archiver) writeBackup(ctx context.Context, path string, to backup.Recipients, noDrill bool, now time.Time) (r BackupResult, err error) {
	plan, done, err := ar.pinAll(ctx, now)
	if err != nil {
		return r, err
	}
	defer done()
	if free, known := freeSpace(filepath.Dir(path)); known && free < uint64(plan.Size()) {
		return r, fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed", store.ErrNoSpace, free/abi.MiB, path, plan.Size()/abi.MiB)
	}
	order := backup.Order{Path: path, To: to, Room: func() error { return roomFor(ar.DataDir, 0) }}
	if !noDrill {
		order.Drill = func(ctx context.Context, archive io.Reader) error { return ar.drill(ctx, archive, plan.Digest()) }
	}
	w, err := backup.Create(ctx, plan, order)
	if err != nil {
		return r, err
	}
	s := plan.Manifest.Summary()
	r = BackupResult{Streams: s.Streams, Modules: s.Modules, Secrets: s.Secrets}
	r.Entry = backup.Entry{
		File: path, Created: s.Created, Size: w.Size, SHA256: w.SHA256,
		Encrypted: len(to) > 0, Verified: !noDrill, Records: s.Records,
	}
	return r, nil
}

// pinAll pins what is backed up until done is called.
func (ar *archiver) pinAll(ctx context.Context, now time.Time) (p *backup.Plan, done func(), err error) {
	image, secrets, err := ar.pin(ctx)
	if err != nil {
		return nil, nil, notBackedUp(err)
	}
	p, err = backup.Prepare(ctx, backup.Source{
		Image: image, Secrets: secrets, Modules: filepath.Join(ar.DataDir, "modules"),
		Version: ThisVersion().Version, Installation: ar.ID, Now: now,
	})
	if err != nil {
		image.Close()
		return nil, nil, notBackedUp(err)
	}
	return p, image.Close, nil
}

// pin takes store and secrets as of one instant: no secret changes while the
// store is pinned. A module is kept before the store names it, and stays.
func (ar *archiver) pin(ctx context.Context) (image store.Image, secrets []vault.File, err error) {
	s, ok := ar.Store.(store.Imager)
	if !ok {
		return nil, nil, ErrNoBackup
	}
	v, err := vault.Open(ar.DataDir)
	if err != nil {
		return nil, nil, err
	}
	// The first image may have to wait until an erasure is done.
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

// notBackedUp explains that a damaged store is not backed up: the copy would hide the damage.
func notBackedUp(err error) error {
	var damage *store.DamageError
	if errors.As(err, &damage) {
		return fmt.Errorf("%w; a damaged store is not backed up: restore an earlier backup with sluice restore, or see sluice doctor --deep", err)
	}
	return err
}

// drill restores an archive, which must be the one of the digest, and throws it away.
func (ar *archiver) drill(ctx context.Context, archive io.Reader, digest string) error {
	dir, err := os.MkdirTemp(backup.Dir(ar.DataDir), ".tmp-drill-")
	if err != nil {
		return err
	}
	_, got, err := backup.UnpackApart(ctx, archive, dir)
	if err == nil && got != digest {
		err = fmt.Errorf("%w: another backup was read than was written", backup.ErrRefused)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// Backup implements host.Backups.
func (bs *backups) Backup(ctx context.Context, q host.NewBackup) (host.Backup, error) {
	for path, name := range map[string]string{q.Out: "out", q.NewIdentity: "newIdentity"} {
		if path != "" && !filepath.IsAbs(path) {
			return host.Backup{}, invalid(name, "absolute path", "want an absolute path")
		}
	}
	r, err := bs.archiver.Backup(ctx, BackupOptions{To: q.To, NewIdentity: q.NewIdentity, Plain: q.Plain, Out: q.Out, NoDrill: q.NoDrill})
	switch {
	case errors.Is(err, ErrBackupBusy):
		return host.Backup{}, host.Refuse("conflict", "%v", err)
	case errors.Is(err, ErrNoBackup), errors.Is(err, ErrBackupChoice), errors.Is(err, backup.ErrRecipient), errors.Is(err, backup.ErrExists):
		return host.Backup{}, host.Refuse("validation_error", "%v", err)
	case err != nil:
		return host.Backup{}, asRefusal(err)
	}
	return host.Backup{
		File: r.File, Created: r.Created, Size: r.Size, SHA256: r.SHA256, Encrypted: r.Encrypted, Verified: r.Verified, Records: r.Records,
		Streams: r.Streams, Modules: r.Modules, Secrets: r.Secrets, Recipient: r.Recipient,
	}, nil
}
