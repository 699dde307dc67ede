// Package portal uses the browser as an owner does: the built program, a connector
// that acts in Chromium, a bank that counts what it was really asked to do, and the
// commands that docs/browser-connectors.md shows. It trusts what the bank counted and
// what the commands print, and nothing inside of them.
package portal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/app"
)

// built are the files made once for all tests. Every user can read them.
var built struct {
	dir, sluice, portal, radicale, cache string
}

func TestMain(m *testing.M) { os.Exit(build(m.Run)) }

func build(run func() int) int {
	dir, err := os.MkdirTemp("", "sluice-portal-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return complain(err)
	}
	built.dir, built.sluice, built.cache = dir, filepath.Join(dir, "sluice"), filepath.Join(dir, "cache")
	cmd := exec.Command("go", "build", "-o", built.sluice, "github.com/sluicehost/sluice")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return complain(fmt.Errorf("build sluice: %w\n%s", err, out))
	}
	for name, into := range map[string]*string{"portal": &built.portal, "radicale": &built.radicale} {
		*into = filepath.Join(dir, name+".wasm")
		wasm, err := app.Build(context.Background(), filepath.Join("..", "..", "examples", name))
		if err == nil {
			err = os.WriteFile(*into, wasm, 0o644)
		}
		if err != nil {
			return complain(err)
		}
	}
	return run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
