package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/sandbox"
)

// Build compiles a source directory to a module and embeds its manifest.json, which it validates first. It runs
// the local Go toolchain on the caller's own source: building is not sandboxed, running is. The error is a
// *run.Refusal.
func Build(ctx context.Context, dir string) ([]byte, error) {
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, refusal("connector_invalid", fmt.Errorf("%s is no connector: %w", dir, err))
	}
	if _, err := abi.ReadManifest(manifest); err != nil {
		return nil, manifestRefusal(fmt.Errorf("%s: %w", filepath.Join(dir, "manifest.json"), err))
	}
	out, err := os.MkdirTemp("", "sluice-build-")
	if err != nil {
		return nil, refusal("connector_not_runnable", err)
	}
	defer os.RemoveAll(out)
	module := filepath.Join(out, "connector.wasm")
	cmd := exec.CommandContext(ctx, "go", append(buildArgs(dir), "-o", module, ".")...) // #nosec G204 -- the owner's source, with the go command
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return nil, refusal("connector_not_runnable",
			fmt.Errorf("build %s: %w\n%s", dir, err, strings.TrimSpace(said.String())))
	}
	wasm, err := os.ReadFile(module)
	if err != nil {
		return nil, refusal("connector_not_runnable", err)
	}
	embedded, err := sandbox.EmbedManifest(wasm, manifest)
	if err != nil {
		return nil, refusal("module_invalid", fmt.Errorf("embed manifest: %w", err))
	}
	return embedded, nil
}

// buildArgs returns the arguments of go build. They let the toolchain complete a go.mod that has no go.sum yet,
// so that a new connector builds without a further command.
func buildArgs(dir string) []string {
	out := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	_, noSum := os.Stat(filepath.Join(dir, "go.sum"))
	if err == nil && errors.Is(noSum, fs.ErrNotExist) {
		out = append(out, "-mod=mod")
	}
	return out
}
