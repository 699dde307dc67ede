package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host"
)

func (c *command) build() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "build [DIR]", Short: "Compile a connector and embed its manifest",
		Long: `Compiles the Go program in DIR, the current directory unless another is named, to
WebAssembly and embeds DIR/manifest.json, which is checked first. The result is
NAME.wasm in the current directory, NAME being the connector's.

This runs the Go toolchain on the code in DIR: it is for your own code.`,
		Example: "  sluice build examples/git -o git.wasm",
		Args:    args(0, 1, "at most one directory"),
		RunE: func(cmd *cobra.Command, a []string) error {
			dir := "."
			if len(a) == 1 {
				dir = a[0]
			}
			if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
				return usagef("sluice build takes a directory, and %s is none", dir)
			}
			l, _, err := c.load(cmd.Context(), dir, "", "")
			if err != nil {
				return err
			}
			if out == "" {
				out = l.Manifest.Name() + ".wasm"
			}
			return c.writeModule(l, out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write (default: NAME.wasm)")
	return cmd
}

// built is what sluice build prints.
type built struct {
	File   string `json:"file"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
}

// writeModule writes the module under another name first, so that a file that
// exists is whole.
func (c *command) writeModule(l *host.Loaded, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usagef("-o: %w", err)
	}
	_, err = f.Write(l.Wasm)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	c.warn(l)
	if c.json {
		return printJSON(c.out, built{path, l.Module.Digest, l.Module.Size})
	}
	c.warnf("%s: %s, %s", path, bytesText(l.Module.Size), l.Module.Digest)
	return nil
}
