package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/app"
)

// versionCommands is sluice version.
type versionCommands struct{ *command }

func (c versionCommands) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		Long:    "Prints the version of this program and of what it is made of. With --json: one\nobject.",
		Example: "  sluice version --json",
		Args:    args(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			v := app.ThisVersion()
			if c.json {
				return printJSON(c.out, v)
			}
			_, err := fmt.Fprintf(c.out, "sluice %s\nABI %s\n%s\n%s %s\n", v.Version, v.ABI, v.Engine, v.Go, v.Platform)
			return err
		},
	}
}
