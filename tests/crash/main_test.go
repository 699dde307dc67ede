// Package crash tests the command line from outside while it is killed: the built
// program, a connector and one data directory. It sees what an owner sees (events as
// they are announced, and what later commands print) and trusts nothing else.
package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/tests/build"
)

// built are the files made once for all tests.
var built struct {
	dir    string // readable for every user
	sluice string // the program, as it is shipped: without cgo
	pages  string // the connector
	cache  string // compiled modules
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(dumped); dir != "" {
		os.Exit(dump(dir))
	}
	os.Exit(setUp(m.Run))
}

func setUp(run func() int) int {
	dir, err := os.MkdirTemp("", "sluice-crash-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	built.dir, built.sluice, built.pages, built.cache = dir, filepath.Join(dir, "sluice"),
		filepath.Join(dir, "pages.wasm"), filepath.Join(dir, "cache")
	if err := os.Chmod(dir, 0o755); err != nil {
		return complain(err)
	}
	if err := errors.Join(build.ProgramAt(built.sluice), build.Connectors(dir, "tests/crash/pages")); err != nil {
		return complain(err)
	}
	return run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
