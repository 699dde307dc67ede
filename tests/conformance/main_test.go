package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/host/app"
)

var update = flag.Bool("update", false, "write the outcomes of transcripts")

// What all tests share: the players, built once, and one host. Each case
// copies the host and gives it a store of its own.
var shared struct {
	host    *app.Host
	players map[string]string // transport -> module
}

// TestMain is also the worker: the sandbox runs this binary again.
func TestMain(m *testing.M) {
	if code, worker := app.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	flag.Parse()
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue {
		checks.Value.Set("500")
	}
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // the seed is in the output
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	cache, err := cacheDir()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	modules, err := os.MkdirTemp("", "players")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(modules)
	shared.players = map[string]string{}
	for _, transport := range []string{"abi", "stdio"} {
		path := filepath.Join(modules, transport+".wasm")
		if err := buildPlayer(path, transport); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		shared.players[transport] = path
	}
	h, err := app.Open(context.Background(), app.Options{Store: "memory:?memory=small", CacheDir: cache, Browsers: noBrowsers{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.host = h
	code := m.Run()
	if err := h.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// cacheDir keeps compiled code between test runs: SLUICE_CACHE, or a directory
// of the user's cache.
func cacheDir() (string, error) {
	dir := os.Getenv("SLUICE_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "sluice-tests")
	}
	return dir, os.MkdirAll(dir, 0o700)
}

func buildPlayer(path, transport string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags", transport, "-o", path, "./player")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build player: %w\n%s", err, out)
	}
	return nil
}
