package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
)

func (c exampleCommands) conformance() *cobra.Command {
	cmd := &cobra.Command{
		Use: "conformance", Short: "Connectors to try a client of the API on",
		Long:    "The conformance connectors do one thing each: wait, fail, ask. A client of the API\ntries itself on them without an account anywhere.",
		Example: "  sluice conformance install",
		RunE: func(_ *cobra.Command, a []string) error {
			return notSubcommand(a, "sluice conformance install")
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "install", Short: "Build and install the conformance connectors",
		Long:    "Builds the connectors of examples/conformance and installs them under their names,\non the running host or in the store. It is run from a checkout of Sluice.",
		Example: "  go run . conformance install",
		Args:    args(0, 0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.installConformance(cmd.Context()) },
	})
	return cmd
}

// conformanceIn lists the sources of the conformance connectors in a checkout.
func conformanceIn(root string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(root, "examples", "conformance", "conformance-*", "manifest.json"))
	if err != nil || len(all) == 0 {
		return nil, usagef("there are no sources in %s", filepath.Join(root, "examples", "conformance"))
	}
	slices.Sort(all)
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return all, nil
}

func (c exampleCommands) installConformance(ctx context.Context) error {
	root, err := checkout()
	if err != nil {
		return err
	}
	dirs, err := conformanceIn(root)
	if err != nil {
		return err
	}
	return c.withClient(ctx, app.Options{}, func(k *client.Client) error {
		if err := c.installExamples(ctx, k, dirs, host.InstallConnector{Conformance: true}); err != nil {
			return err
		}
		return c.printInstalled(dirs)
	})
}

// installExamples builds the connectors of source directories and installs each as q
// says.
func (c exampleCommands) installExamples(ctx context.Context, k *client.Client, dirs []string,
	q host.InstallConnector) error {
	return c.withLocalHost(func(h *app.Host) error {
		for _, dir := range dirs {
			c.printBuilding(dir)
			l, err := h.Load(ctx, dir, "")
			if err != nil {
				return err
			}
			q.Module = l.Wasm
			if _, _, err := k.InstallConnector(ctx, q); err != nil {
				return fmt.Errorf("install %s: %w", l.Connector.Name, err)
			}
		}
		return nil
	})
}

func (c exampleCommands) printInstalled(dirs []string) error {
	var names []string
	for _, d := range dirs {
		names = append(names, filepath.Base(d))
	}
	if c.json {
		return printJSON(c.out, names)
	}
	c.warnf("Installed %s.", strings.Join(names, ", "))
	return nil
}

func (c exampleCommands) printBuilding(dir string) {
	shown := dir
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, dir); err == nil && !strings.HasPrefix(rel, "..") {
			shown = rel
		}
	}
	c.warnf("building, checking and compiling %s", abi.Clean(shown))
}
