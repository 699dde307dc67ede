package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// doctorCommands is sluice doctor. It is about this machine, and about a store also where
// that does not open, so that no host is asked but for how the store it has is.
type doctorCommands struct{ *command }

func (c doctorCommands) doctor() *cobra.Command {
	var deep, accept bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything a run depends on",
		Long: `Checks isolation, engine, store, space and file modes. Each line is ok, weak or
bad; what is not ok says what to do. Ends with code 6 when something is bad.
With --json: one array of findings.

--accept-loss makes a store writable again that proved to have lost commits, from
what is left: connectors fetch the rest again.`,
		Example: "  sluice doctor\n  sluice doctor --deep --json",
		Args:    args(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.doDoctor(cmd.Context(), app.Options{Store: c.store, CacheDir: cacheDir(), AcceptLoss: accept}, deep)
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "recount every record and compare")
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "go on from what is left of a damaged store")
	return cmd
}

func (c doctorCommands) doDoctor(ctx context.Context, o app.Options, deep bool) error {
	if o.AcceptLoss {
		if dir, err := app.DataDir(o.Store); err != nil || dir == "" {
			return usagef("--accept-loss needs a store that is kept: --store badger:DIR")
		}
	}
	k, err := c.findHost(ctx)
	if err != nil {
		return err
	}
	if k != nil && (deep || o.AcceptLoss || !k.Local()) {
		return c.requireNoHost(ctx, stopFirst)
	}
	findings := app.Doctor(ctx, o, deep)
	if k != nil {
		findings = withHostFindings(ctx, k, findings)
	}
	s := c.screenOut()
	var rows [][]string
	for _, f := range findings {
		if f.State == app.StateBad {
			c.code = exitHost
		}
		detail := abi.Clean(f.Detail)
		if f.Remedy != "" {
			detail += " → " + abi.Clean(f.Remedy)
		}
		rows = append(rows, []string{f.State, f.Check, detail})
	}
	if c.json {
		return printJSON(c.out, findings)
	}
	if !s.live {
		return c.table(nil, rows)
	}
	for _, r := range rows {
		s.line(s.paint(stateColor[r[0]], pad(r[0], 5)) + pad(r[1], 16) + r[2])
	}
	return nil
}

// withHostFindings replaces the finding about a store that a running host uses by what the
// host says.
func withHostFindings(ctx context.Context, k *client.Client, findings []app.Finding) []app.Finding {
	for i, f := range findings {
		if f.Check != "store" || f.State != app.StateBad {
			continue
		}
		info, err := k.System(ctx)
		if err != nil {
			f.Detail, f.Remedy = "a running host has it and does not say how it is: "+err.Error(), "see its log"
		} else {
			f.State, f.Detail, f.Remedy = app.StateOK, "a running host has it, since "+store.Time(info.StartedAt), ""
			for _, w := range info.Warnings {
				if w.Code == host.WarningPolling {
					findings = append(findings, app.Finding{Check: w.Code, State: app.StateWeak, Detail: w.Message})
				}
			}
		}
		findings[i] = f
	}
	return findings
}

var stateColor = map[string]string{app.StateOK: green, app.StateWeak: yellow, app.StateBad: red}

func pad(s string, width int) string {
	for len(s) < width {
		s += " "
	}
	return s
}
