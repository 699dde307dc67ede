package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/host/app"
)

// buildCommands are sluice build and new.
type buildCommands struct{ *command }

func (c buildCommands) build() *cobra.Command {
	var out, wasm, manifest string
	cmd := &cobra.Command{
		Use: "build [DIR] | build --wasm FILE --manifest FILE", Short: "Compile a connector and embed its manifest",
		Long: `Compiles the Go program in DIR, the current directory unless another is named, to
WebAssembly and embeds DIR/manifest.json, which is checked first. The result is
NAME.wasm in the current directory, NAME being the connector's.

This runs the Go toolchain on the code in DIR: it is for your own code.

With --wasm and --manifest a module that another compiler made, of C, Rust or any
language that makes WebAssembly, gets its manifest. Nothing is run then.`,
		Example: "  sluice build examples/git -o git.wasm\n  sluice build --wasm target/mail.wasm --manifest manifest.json",
		Args:    args(0, 1, "at most one directory"),
		RunE: func(cmd *cobra.Command, a []string) error {
			l, err := c.buildFrom(cmd.Context(), a, wasm, manifest)
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
	cmd.Flags().StringVar(&wasm, "wasm", "", "a module that is compiled already, in `FILE`; needs --manifest")
	cmd.Flags().StringVar(&manifest, "manifest", "", "with --wasm: the manifest to embed, in `FILE`")
	return cmd
}

// buildFrom makes a module of a source directory, or of a compiled module and a
// manifest.
func (c buildCommands) buildFrom(ctx context.Context, a []string, wasm, manifest string) (*app.Loaded, error) {
	dir := "."
	if len(a) == 1 {
		dir = a[0]
	}
	switch fi, err := os.Stat(dir); {
	case wasm != "" && manifest != "" && len(a) == 0:
		return c.embedded(ctx, wasm, manifest)
	case wasm != "" || manifest != "":
		return nil, usagef(
			"a compiled module takes both --wasm FILE and --manifest FILE, and no directory; a directory has its manifest.json")
	case err == nil && fi.Mode().IsRegular():
		return nil, usagef(
			"sluice build takes a directory, and %s is a file; a module gets its manifest with --wasm %[1]s --manifest FILE",
			dir)
	case err != nil || !fi.IsDir():
		return nil, usagef("sluice build takes a directory, and %s is none", dir)
	}
	l, _, err := c.load(ctx, dir, "", "")
	return l, err
}

func (c buildCommands) embedded(ctx context.Context, wasm, manifest string) (l *app.Loaded, err error) {
	err = c.withLocalHost(func(h *app.Host) error {
		l, err = h.Embed(ctx, wasm, manifest)
		return err
	})
	return l, err
}

// buildResult is what sluice build prints.
type buildResult struct {
	File   string `json:"file"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
}

// writeModule writes the module under another name first, so that a file that
// exists is whole.
func (c buildCommands) writeModule(l *app.Loaded, path string) error {
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
		return printJSON(c.out, buildResult{path, l.Module.Digest, l.Module.Size})
	}
	c.warnf("%s: %s, %s", path, bytesText(l.Module.Size), l.Module.Digest)
	return nil
}
