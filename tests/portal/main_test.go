// Package portal uses the browser as an owner does: the built program, a connector that
// acts in Chromium, a bank that counts what it was really asked to do, and the commands
// that docs/browser-connectors.md shows. It trusts only the bank's counts and what the
// commands print.
package portal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/tests/build"
)

// built are the files made once for all tests. Every user can read them.
var built struct {
	dir, sluice, portal, radicale, cache string
}

func TestMain(m *testing.M) { os.Exit(setUp(m.Run)) }

func setUp(run func() int) int {
	dir, err := os.MkdirTemp("", "sluice-portal-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return complain(err)
	}
	built.dir, built.sluice, built.cache = dir, filepath.Join(dir, "sluice"), filepath.Join(dir, "cache")
	built.portal, built.radicale = filepath.Join(dir, "portal.wasm"), filepath.Join(dir, "radicale.wasm")
	if err := errors.Join(build.ProgramAt(built.sluice),
		build.Connectors(dir, "examples/portal", "examples/radicale")); err != nil {
		return complain(err)
	}
	return run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
