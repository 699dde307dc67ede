package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// storeCommands are those below sluice store.
type storeCommands struct{ *command }

func (c storeCommands) store() *cobra.Command {
	cmd := &cobra.Command{
		Use: "store", Short: "Move everything to another store",
		Long:    "Fills an empty store, of another kind or elsewhere, with all that one holds. The one\nthat is read stays as it is.",
		Example: "  sluice store copy badger:/var/lib/sluice postgres://sluice@localhost/sluice",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice store copy FROM TO")
		},
	}
	cmd.AddCommand(c.copy())
	return cmd
}

func (c storeCommands) copy() *cobra.Command {
	var o app.CopyOptions
	cmd := &cobra.Command{
		Use: "copy FROM TO", Short: "Fill an empty store with all that another holds",
		Long: `Copies records with their versions, tombstones and files, cursors, gaps, runs and
their timelines, connections, grants, schedules, keys and every other document from one
store to another, of the same kind or not: badger:DIR, postgres://USER@HOST/DATABASE.

No host may use either of them meanwhile. The source is not changed. The target must be
empty: a store is never merged into another. First the source is verified; when all is
copied, the target recounts itself, both are compared item by item, and only then the
target is a store like any other. A copy that was cut off, however, goes on where it
ended when the same command is given again.

What is an owner's in the source's data directory goes along to the target's: secrets
and their key, modules, profiles, the audit log, the host's id, assistants and the
recipients of backups. Compiled code, tables of queries and search are made again when
they are missing; backups and traces stay where they are.

Serve one of the two afterwards: both would run the same schedules.`,
		Example: "  sluice store copy badger:/var/lib/sluice postgres://sluice@localhost/sluice\n  sluice store copy 'postgres://sluice@localhost/sluice?data=/srv/sluice' badger:/srv/sluice-copy",
		Args:    args(2, 2, "two stores"),
		RunE: func(cmd *cobra.Command, a []string) error {
			o.From, o.To = a[0], a[1]
			return c.doCopy(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.AllowNetworkFS, "allow-network-fs", false, "take a data directory on a network file system")
	return cmd
}

func (c storeCommands) doCopy(ctx context.Context, o app.CopyOptions) error {
	if c.url != "" {
		return usagef("a store is copied where it is, not over --url")
	}
	p := &copyScreen{screen: c.screen}
	o.Tell = p.update
	r, err := app.CopyStore(ctx, o)
	c.screen.clear()
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, r)
	}
	s := c.screenOut()
	s.line(abi.Clean(r.To))
	s.line(fmt.Sprintf("  %s, %s, %s, verified: both stores hold the same", recordCount(int64(r.Records)), countOf(r.Events, "event"), countOf(r.Files, "file"))) // #nosec G115 -- counted
	c.warnf("In %s now: %s.", abi.Clean(r.DataDir), listText(r.Along))
	if len(r.Left) > 0 {
		c.warnf("Left where they were: %s.", listText(r.Left))
	}
	c.warnf("The source is as it was. Serve one of the two: both would run the same schedules.")
	return nil
}

func listText(names []string) string {
	if len(names) == 0 {
		return "nothing besides"
	}
	return abi.Clean(strings.Join(names, ", "))
}

// A copyScreen shows how far a copy is: a line that is drawn over on a terminal, elsewhere a line
// for each stage and each tenth of one.
type copyScreen struct {
	screen *screen
	stage  store.CopyStage
	tenths uint64
	drawn  time.Time
}

var stages = map[store.CopyStage]string{
	store.CopySurvey: "Verifying the source.", store.CopyItems: "Copying.", store.CopyVerify: "Verifying the copy.",
	store.CopyCompare: "Comparing the two.",
}

func (p *copyScreen) update(c store.CopyProgress) {
	if c.Stage != p.stage {
		p.stage, p.tenths = c.Stage, 0
		text := stages[c.Stage]
		if c.Stage == store.CopyItems && c.Resumed {
			text = "Going on with the copy that was cut off."
		}
		p.screen.line(text)
	}
	if now := time.Now(); p.screen.live && now.Sub(p.drawn) > redrawEvery {
		p.drawn = now
		p.screen.draw([]string{"  " + progressText(c)})
	}
	all := c.Of.Records + c.Of.Events
	if tenths := 10 * (c.Done.Records + c.Done.Events) / max(all, 1); !p.screen.live && tenths > p.tenths && tenths < 10 {
		p.tenths = tenths
		p.screen.line("  " + progressText(c))
	}
}

// progressText describes the progress of a copy.
func progressText(c store.CopyProgress) string {
	return fmt.Sprintf("%s of %s, %s of %s, %s; %s", count(int64(c.Done.Records)), countOf(c.Of.Records, "record"), // #nosec G115 -- counted
		count(int64(c.Done.Events)), countOf(c.Of.Events, "event"), bytesText(c.Done.Bytes), c.Kind) // #nosec G115 -- counted
}
