package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

func (c *command) restore() *cobra.Command {
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
	cmd.Flags().BoolVar(&o.KeepSchedules, "keep-schedules", false, "leave schedules running; the old host must not run them any more")
	cmd.Flags().BoolVar(&o.KeepKeys, "keep-keys", false, "leave API keys and sessions valid, also those that were revoked since")
	return cmd
}

func (c *command) doRestore(ctx context.Context, o app.RestoreOptions) error {
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
