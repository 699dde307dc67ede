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

func (c backupCommands) restore() *cobra.Command {
	identity := ""
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make a data directory of a backup",
		Long: `Makes the data directory, which must be empty or not there, of a backup. Nothing
is ever merged. All of the backup is read, unpacked beside the data directory and
recounted first; one altered bit refuses it. The result is an installation of its
own, with an id of its own.

Restore only files that you made: encryption keeps others from reading a backup, but
does not say who wrote it.

The key of the stored secrets is not in a backup. Put your copy of it back as
DATA/keys/vault.age-identity, or remove the secrets and set them again.`,
		Example: "  sluice restore sluice-20260301T120000Z.age --identity ~/sluice-backup.key\n  sluice restore old.age --identity key --store badger:/tmp/look",
		Args:    args(1, 1, "one file"),
		RunE: func(cmd *cobra.Command, a []string) error {
			return c.doRestore(cmd.Context(), a[0], identity)
		},
	}
	cmd.Flags().StringVar(&identity, "identity", "", "an age identity `FILE` that opens it")
	return cmd
}

func (c backupCommands) doRestore(ctx context.Context, file, identity string) error {
	for _, f := range []string{file, identity} {
		if fi, err := os.Stat(f); f != "" && (err != nil || !fi.Mode().IsRegular()) {
			return usagef("there is no file %s", f)
		}
	}
	r, err := app.Restore(ctx, c.store, file, identity)
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
	if r.Secrets > 0 {
		c.warnf("Stored secrets (%d) are sealed: put your copy of their key to %s, or remove them and set them again.",
			r.Secrets, abi.Clean(filepath.Join(r.DataDir, "keys", "vault.age-identity")))
	}
	return nil
}
