//go:build unix

package hostile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/tests/build"
)

// A neighbour is an honest connector that runs during the attacks; each of its runs
// must succeed.
type neighbour struct {
	host      *app.Host
	connector *app.Loaded
	rounds    int
}

func newNeighbour(t *testing.T, h *app.Host) *neighbour {
	t.Helper()
	wasm, err := build.Connector("tests/hostile/testdata/neighbour")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "neighbour.wasm")
	if err := os.WriteFile(path, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := h.Load(context.Background(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	return &neighbour{host: h, connector: l}
}

// beside runs the neighbour once in parallel with fn, and reports whether the neighbour
// finished first.
func (n *neighbour) beside(t *testing.T, fn func()) (first bool) {
	t.Helper()
	n.rounds++
	said := make(chan error, 1)
	go func() { said <- n.round() }()
	fn()
	var err error
	select {
	case err = <-said:
		first = true
	default:
		err = <-said
	}
	if err != nil {
		t.Fatalf("the neighbour's run was disturbed: %v", err)
	}
	return first
}

func (n *neighbour) round() error {
	ctx := context.Background()
	r, err := n.host.Start(ctx, app.RunRequest{Connector: n.connector, Connection: "neighbour"})
	if err != nil {
		return err
	}
	result, err := r.Do(ctx)
	if err != nil {
		return err
	}
	if result.Status != abi.Succeeded || result.RecordsFlushed != 1000 {
		return fmt.Errorf("ended as %s with %d records: %s", result.Status, result.RecordsFlushed, describe(result))
	}
	return nil
}
