package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/store"
)

// backupCommands are sluice backup and restore.
type backupCommands struct{ *command }

func (c backupCommands) backup() *cobra.Command {
	var o host.NewBackup
	list := false
	cmd := &cobra.Command{
		Use: "backup", Short: "Copy everything into one encrypted file, and try it",
		Long: `Writes records, cursors, timelines, connections, installed modules and the stored
secrets, sealed as they are, into one file that is encrypted to its recipients:
those of --to and those listed in DATA/backup.recipients. Then the file is restored
once in a directory that is thrown away, and everything in it is recounted; a
backup that was not is listed as unverified.

A running host makes the backup itself, as its own user, while it goes on: the file
is everything as of one instant. It finishes also when this command is interrupted.

The key of the secrets, DATA/keys/vault.age-identity, is not in a backup: whoever
has only the backup and its identity reads no secret. Keep a copy of that file in
another place, or set the secrets again after a restore.

--new-identity makes a key for backups and remembers its recipient. Keep the file
elsewhere than the data: without it nobody can restore, and beside the data it
protects nothing.`,
		Example: "  sluice backup --new-identity ~/sluice-backup.key   # once\n  sluice backup\n  sluice backup --to age1… --out /media/usb/sluice.age\n  sluice backup --list",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return c.listBackups()
			}
			return c.doBackup(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.To, "to", nil, "an age `RECIPIENT` who can open it; repeatable")
	f.StringVar(&o.NewIdentity, "new-identity", "",
		"write a fresh age identity to `FILE`, and keep its recipient for this backup and later ones")
	f.BoolVar(&o.Plain, "plain", false, "do not encrypt: everybody with the file reads all records")
	f.StringVar(&o.Out, "out", "", "write to `FILE` (default: a name with the time in DATA/backups)")
	f.BoolVar(&o.NoDrill, "no-drill", false, "leave it unverified")
	f.BoolVar(&list, "list", false, "list the backups that were made; with --json one array")
	return cmd
}

func (c backupCommands) doBackup(ctx context.Context, o host.NewBackup) error {
	if c.url != "" {
		return usagef("a backup is made where the host runs, not over --url")
	}
	dir, err := app.DataDir(c.store)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); dir != "" && err != nil {
		return usagef("there is nothing to back up in %s yet", dir)
	}
	return c.withClient(ctx, app.Options{NoSandbox: true}, func(k *client.Client) error {
		r, err := remoteBackup(ctx, k, o)
		return c.printResultOf(o, r, dir, err)
	})
}

// remoteBackup has the host make a backup.
func remoteBackup(ctx context.Context, k *client.Client, o host.NewBackup) (b host.Backup, err error) {
	for _, path := range []*string{&o.Out, &o.NewIdentity} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return b, err
		}
	}
	return k.Backup(ctx, o)
}

func (c backupCommands) printResultOf(o host.NewBackup, r host.Backup, dir string, err error) error {
	if r.Recipient != "" && !c.json {
		c.warnf("Made %s for backups to %s. Move it to a place of its own: without it nobody can restore them.",
			o.NewIdentity, r.Recipient)
	}
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, r)
	}
	c.printBackup(r, dir)
	return nil
}

// printBackup prints what the backup has and what it lacks.
func (c backupCommands) printBackup(r host.Backup, data string) {
	s := c.screenOut()
	s.line(abi.Clean(r.File))
	state := "verified: restored once, everything agrees"
	if !r.Verified {
		state = "unverified"
	}
	s.line("  " + recordCount(int64(r.Records)) + ", " + bytesText(r.Size) + ", " + state)
	if !r.Encrypted {
		c.warnf("It is not encrypted: whoever has the file reads all records.")
	}
	if r.Secrets > 0 {
		c.warnf("Stored secrets (%d) are in it as they are, sealed; their key is not. Keep a copy of %s elsewhere, or set them again after a restore.",
			r.Secrets, abi.Clean(filepath.Join(data, "keys", "vault.age-identity")))
	}
}

// backupLine is a backup as a list shows it.
type backupLine struct {
	backup.Entry
	State string `json:"state"` // verified, unverified or gone
}

func (c backupCommands) listBackups() error {
	all, err := app.Backups(c.store)
	if err != nil {
		return err
	}
	lines := []backupLine{}
	var rows [][]string
	for _, e := range all {
		state := "verified"
		switch {
		case e.Gone():
			state = "gone"
		case !e.Verified:
			state = "unverified"
		}
		kind := "encrypted"
		if !e.Encrypted {
			kind = "plain"
		}
		lines = append(lines, backupLine{e, state})
		rows = append(rows, []string{state, c.timeText(e.Created), kind, bytesText(e.Size),
			recordCount(int64(e.Records)), e.File})
	}
	if c.json {
		return printJSON(c.out, lines)
	}
	if len(rows) == 0 {
		c.warnf("No backup was made; sluice backup makes one.")
	}
	return c.table([]string{"state", "made", "kind", "size", "records", "file"}, rows)
}

func (c backupCommands) restore() *cobra.Command {
	var o app.RestoreOptions
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make a data directory of a backup",
		Long: `Makes the data directory, which must be empty or not there, of a backup. Nothing
is ever merged. All of the backup is read, unpacked beside the data directory and
recounted first; one altered bit refuses it. The result is an installation of its
own, with an id of its own: its schedules are paused, since the old host may still run
them, and its API keys revoked, since some may have been taken back after the backup.

Restore only files that you made: encryption keeps others from reading a backup, but
does not say who wrote it.

The key of the stored secrets is not in a backup. Put your copy of it back as
DATA/keys/vault.age-identity, or remove the secrets and set them again.`,
		Example: "  sluice restore sluice-20260301T120000Z.age --identity ~/sluice-backup.key\n  sluice restore old.age --identity key --store badger:/tmp/look",
		Args:    args(1, 1, "one file"),
		RunE: func(cmd *cobra.Command, a []string) error {
			o.File = a[0]
			return c.doRestore(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Identity, "identity", "", "an age identity `FILE` that opens it")
	cmd.Flags().BoolVar(&o.KeepSchedules, "keep-schedules", false,
		"leave schedules running; the old host must not run them any more")
	cmd.Flags().BoolVar(&o.KeepKeys, "keep-keys", false,
		"leave API keys and sessions valid, also those that were revoked since")
	return cmd
}

func (c backupCommands) doRestore(ctx context.Context, o app.RestoreOptions) error {
	for _, f := range []string{o.File, o.Identity} {
		if fi, err := os.Stat(f); f != "" && (err != nil || !fi.Mode().IsRegular()) {
			return usagef("there is no file %s", f)
		}
	}
	r, err := app.Restore(ctx, c.store, o)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, r)
	}
	s := c.screenOut()
	s.line(abi.Clean(r.DataDir))
	s.line("  " + recordCount(int64(r.Records)) + ", as of " + store.Time(r.Created))
	c.warnf("Grants are as they were then, also those that were revoked or used up since: sluice connections shows them, sluice revoke takes them back.")
	if r.DestinationsPaused > 0 {
		c.warnf("Destinations (%d) are paused: the host that was feeds them. Remove them here, and add them with --take-over to have them filled anew from this copy.", r.DestinationsPaused)
	}
	if r.SchedulesPaused > 0 {
		c.warnf("Schedules (%d) are paused: sluice schedule resume CONNECTION starts one again.", r.SchedulesPaused)
	}
	if r.KeysRevoked > 0 {
		c.warnf("API keys (%d) are revoked: sluice keys create makes new ones.", r.KeysRevoked)
	}
	if r.Secrets > 0 {
		c.warnf("Stored secrets (%d) are sealed: put your copy of their key to %s, or remove them and set them again.",
			r.Secrets, abi.Clean(filepath.Join(r.DataDir, "keys", "vault.age-identity")))
	}
	return nil
}
