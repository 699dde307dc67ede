package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

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
	NoDrill     bool     // leave it unverified (S135)
}

// BackupResult is a backup that was made.
type BackupResult struct {
	backup.Entry
	Streams   int    `json:"streams"`
	Modules   int    `json:"modules"`
	Secrets   int    `json:"secrets"`
	Recipient string `json:"recipient,omitempty"` // of NewIdentity
}

// Backup writes everything that is needed to go on elsewhere into one file:
// store, modules, sealed secrets (S134). What opens the secrets is not in it.
// It counts after it was restored once, which is part of it (S135). The store may
// be in use meanwhile: the backup is everything as of one commit.
func (h *Host) Backup(ctx context.Context, o BackupOptions) (BackupResult, error) {
	if h.DataDir == "" {
		return BackupResult{}, ErrNoBackup
	}
	if !h.backing.TryLock() {
		return BackupResult{}, ErrBackupBusy
	}
	defer h.backing.Unlock()
	if h.ID == "" { // of a host that was opened for the store alone
		if err := h.identify(); err != nil {
			return BackupResult{}, err
		}
	}
	dir := backup.Dir(h.DataDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return BackupResult{}, fmt.Errorf("make place for backups: %w", err)
	}
	if err := backup.Sweep(dir); err != nil {
		return BackupResult{}, fmt.Errorf("clear what a backup that was cut off left: %w", err)
	}
	to, fresh, err := h.recipients(o)
	if err != nil {
		return BackupResult{}, err
	}
	now := time.Now()
	path, err := o.path(dir, now)
	if err != nil {
		return BackupResult{}, err
	}
	r, err := h.writeBackup(ctx, path, to, o.NoDrill, now)
	r.Recipient = fresh
	if err != nil {
		return r, err
	}
	if err := backup.Note(h.DataDir, r.Entry); err != nil {
		return r, err
	}
	return r, h.Audit(by(ctx, audit.Event{Action: audit.BackupMade, Target: filepath.Base(path), Outcome: audit.Done}))
}

// recipients settles who can open the backup; nobody in particular if it is
// plain.
func (h *Host) recipients(o BackupOptions) (to backup.Recipients, fresh string, err error) {
	kept, err := backup.ReadRecipients(h.DataDir)
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
			return nil, "", fmt.Errorf("%w: backups of %s are for the recipients in backup.recipients there; move that file away if they shall be plain", ErrBackupChoice, h.DataDir)
		}
		return nil, "", nil
	}
	if o.NewIdentity != "" {
		if err := h.outside(o.NewIdentity); err != nil {
			return nil, "", err
		}
		if fresh, err = backup.NewIdentity(h.DataDir, o.NewIdentity); err != nil {
			return nil, "", err
		}
		if kept, err = backup.ReadRecipients(h.DataDir); err != nil {
			return nil, "", err
		}
	}
	if to = append(kept, given...); len(to) == 0 {
		return nil, "", fmt.Errorf("%w: a backup is encrypted to somebody: let --new-identity FILE make a key, give one of age-keygen's with --to age1…, or list some in %s",
			backup.ErrRecipient, filepath.Join(h.DataDir, "backup.recipients"))
	}
	return to, fresh, nil
}

// outside refuses to keep what opens the backups beside what is backed up.
func (h *Host) outside(path string) error {
	abs, err := filepath.Abs(path)
	if err == nil {
		if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(real, filepath.Base(abs))
		}
	}
	data, err2 := filepath.EvalSymlinks(h.DataDir)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	if rel, err := filepath.Rel(data, abs); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%w: %s is in the data directory; an identity beside what it protects is no use", ErrBackupChoice, path)
	}
	return nil
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

func (h *Host) writeBackup(ctx context.Context, path string, to backup.Recipients, noDrill bool, now time.Time) (r BackupResult, err error) {
	plan, done, err := h.plan(ctx, now)
	if err != nil {
		return r, err
	}
	defer done()
	if free, known := freeSpace(filepath.Dir(path)); known && free < uint64(plan.Size()) {
		return r, fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed", store.ErrNoSpace, free/abi.MiB, path, plan.Size()/abi.MiB)
	}
	order := backup.Order{Path: path, To: to, Room: func() error { return roomFor(h.DataDir, 0) }}
	if !noDrill {
		order.Drill = func(ctx context.Context, archive io.Reader) error { return h.drill(ctx, archive, plan.Digest()) }
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

// plan pins what is backed up until done is called.
func (h *Host) plan(ctx context.Context, now time.Time) (p *backup.Plan, done func(), err error) {
	image, secrets, err := h.instant(ctx)
	if err != nil {
		return nil, nil, notBackedUp(err)
	}
	p, err = backup.Prepare(ctx, backup.Source{
		Image: image, Secrets: secrets, Modules: filepath.Join(h.DataDir, "modules"),
		Version: ThisVersion().Version, Installation: h.ID, Now: now,
	})
	if err != nil {
		image.Close()
		return nil, nil, notBackedUp(err)
	}
	return p, image.Close, nil
}

// instant takes store and secrets as of one instant: no secret changes while the
// store is pinned. A module is kept before the store names it, and stays.
func (h *Host) instant(ctx context.Context) (image store.Image, secrets []vault.File, err error) {
	s, ok := h.Store.(store.Imager)
	if !ok {
		return nil, nil, ErrNoBackup
	}
	v, err := vault.Open(h.DataDir)
	if err != nil {
		return nil, nil, err
	}
	// The first time it may take as long as something is being erased.
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

// notBackedUp says what to do with a store that is damaged: a copy of it would
// hide that (S122).
func notBackedUp(err error) error {
	var damage *store.DamageError
	if errors.As(err, &damage) {
		return fmt.Errorf("%w; a damaged store is not backed up: restore an earlier backup with sluice restore, or see sluice doctor --deep", err)
	}
	return err
}

// drill restores an archive, which must be the one of the digest, and throws it
// away (S135).
func (h *Host) drill(ctx context.Context, archive io.Reader, digest string) error {
	dir, err := os.MkdirTemp(backup.Dir(h.DataDir), ".tmp-drill-")
	if err != nil {
		return err
	}
	_, got, err := backup.UnpackApart(ctx, archive, dir)
	if err == nil && got != digest {
		err = fmt.Errorf("%w: another backup was read than was written", backup.ErrRefused)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// RestoreResult is what was restored.
type RestoreResult struct {
	backup.Summary
	Disarmed
	DataDir string `json:"data_dir"`
	ID      string `json:"new_installation_id"`
}

// Restore makes the data directory of a store, which must be absent or empty,
// of a backup. What could act by itself or for somebody does not: a key may have
// been revoked since, and the host that was backed up may still run its schedules.
// See docs/spec/security.md, "Backup".
func Restore(ctx context.Context, url string, o RestoreOptions) (r RestoreResult, err error) {
	restrictUmask()
	dir, err := DataDir(url)
	if err == nil && dir == "" {
		err = ErrNoBackup
	}
	if err != nil {
		return r, err
	}
	var ids backup.Identities
	if o.Identity != "" {
		if ids, err = backup.ReadIdentities(o.Identity); err != nil {
			return r, err
		}
	}
	r.DataDir = dir
	r.Summary, err = backup.Restore(ctx, o.File, dir, ids, backup.UnpackApart, func(dir string) error {
		h := &Host{DataDir: dir}
		if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil { // for the owner's copy of the vault's key
			return err
		}
		if r.Disarmed, err = disarm(ctx, dir, o); err != nil {
			return err
		}
		err := h.identify() // a new one: two copies must not both believe to be the one
		if r.ID = h.ID; err != nil {
			return err
		}
		return h.Audit(audit.Event{Action: audit.BackupRestored, Target: filepath.Base(o.File), Outcome: audit.Done})
	})
	return r, err
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

// unpackOpener is how the process that unpacks opens a store. No time passes in it:
// what expired since the backup was made would be swept, and be missing.
var unpackOpener = backup.Opener{
	Open: func(dir string) (backup.Store, error) {
		s, err := drivers.Open("badger:"+dir, drivers.Options{AllowNetworkFS: true, Now: func() time.Time { return time.Unix(0, 0) }}) // whoever opens the result decides
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

// roomFor refuses to write so many bytes to a directory where runs could not be
// started any more then.
func roomFor(dir string, bytes int64) error {
	free, known := freeSpace(dir)
	if need := uint64(bytes) + spaceStart; known && free < need {
		return fmt.Errorf("%w: %d MiB are free for %s, %d MiB are needed; free some disk space and try again", store.ErrNoSpace, free/abi.MiB, dir, need/abi.MiB)
	}
	return nil
}
