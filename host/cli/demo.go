package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// demoConnectors are the examples that the demo installs.
var demoConnectors = []string{"git", "ical", "stdio", "ask"}

func (c *command) demo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "See it work: build the examples and collect a repository twice",
		Long: `Builds the example connectors, installs them in an empty temporary store and
collects the history of the repository this directory belongs to; of sources
that came without their history, a sample table instead. The second run collects
only what is new. It is run from a checkout of Sluice.`,
		Example: "  go run . demo",
		Args:    args(0, 0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.doDemo(cmd.Context()) },
	}
}

func (c *command) doDemo(ctx context.Context) error {
	root, err := checkout()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return err
	}
	c.store = "badger:" + dir
	return c.with(ctx, host.Options{}, func(h *host.Host) error {
		for _, name := range demoConnectors {
			c.warnf("building, checking and compiling examples/%s", name)
			l, err := h.Load(ctx, filepath.Join(root, "examples", name), "")
			if err != nil {
				return err
			}
			if _, err := h.Install(ctx, l, host.InstallOptions{}); err != nil {
				return err
			}
		}
		name, stream, mounts, err := c.demoInput(h, root)
		if err != nil {
			return err
		}
		for range 2 {
			if err := c.demoRun(ctx, h, name, mounts); err != nil {
				return err
			}
		}
		c.warnf("")
		c.warnf("What was collected stays in %s until you delete it. Look around:", dir)
		for _, next := range []string{"connectors", "records " + name + " " + stream + " --limit 5", "events last", "inspect ask"} {
			c.warnf("  go run . %s --store %s", next, c.store)
		}
		return nil
	})
}

// demoInput chooses what is collected: which connector, a stream to look at, and
// the directories it gets.
func (c *command) demoInput(h *host.Host, root string) (name, stream string, mounts []store.Mount, err error) {
	if fi, err := os.Stat(filepath.Join(root, ".git")); err != nil || !fi.IsDir() {
		c.warnf("%s has no git history to collect: examples/stdio collects its sample table", root)
		return "stdio", "rows", nil, nil
	}
	m, err := h.ApproveMount("repo", root, false)
	return "git", "commits", []store.Mount{m}, err
}

// demoRun collects once.
func (c *command) demoRun(ctx context.Context, h *host.Host, name string, mounts []store.Mount) error {
	l, err := h.Load(ctx, name, "")
	if err != nil {
		return err
	}
	out, err := openSinks(&runFlags{})
	if err != nil {
		return err
	}
	defer out.abandon()
	done, err := c.follow(ctx, h, host.RunRequest{Connector: l, Approved: store.Approved{Mounts: mounts}}, out)
	if err != nil {
		return err
	}
	c.code = max(c.code, resultCode(done.result))
	return c.printResult(done)
}

// checkout finds the source tree this command is run from.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "examples", demoConnectors[0], "manifest.json")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", usage{errors.New("demo builds the examples: run it from a checkout of Sluice, with go run . demo")}
		}
	}
}
