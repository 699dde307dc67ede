package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/tests/build"
)

var update = flag.Bool("update", false, "write the outcomes of transcripts")

// All tests share the players, built once, and one host. Each case copies the host and
// gives it a store of its own.
var shared struct {
	host    *app.Host
	players map[string]string // transport -> module
}

// TestMain also runs the worker: the sandbox starts this binary again.
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
	shared.players = map[string]string{}
	cache, err := build.CacheDir()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, transport := range []string{"abi", "stdio"} {
		player, err := build.Module("tests/conformance/player", "-tags", transport)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		shared.players[transport] = player
	}
	h, err := app.Open(context.Background(),
		app.Options{Store: "memory:?memory=small", CacheDir: cache, Browsers: noBrowsers{}})
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
