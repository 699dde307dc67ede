package hostile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/tests/hostile/corpus"
)

// A neighbour is an honest connector that runs again and again beside the
// attacks; each of its runs must succeed.
type neighbour struct {
	rounds atomic.Int64
	failed atomic.Pointer[string]
	end    context.CancelFunc
	done   sync.WaitGroup
}

func startNeighbour(t *testing.T, h *host.Host) *neighbour {
	t.Helper()
	wasm, err := host.Build(context.Background(), "testdata/neighbour")
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
	n := &neighbour{}
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	n.done.Go(func() {
		for ctx.Err() == nil {
			if said := n.round(h, l); said != "" {
				n.failed.Store(&said)
				return
			}
			n.rounds.Add(1)
		}
	})
	t.Cleanup(func() { end(); n.done.Wait() })
	return n
}

// round is one run; it returns what went wrong.
func (n *neighbour) round(h *host.Host, l *host.Loaded) string {
	ctx := context.Background()
	r, err := h.Start(ctx, host.RunRequest{Connector: l, Connection: "neighbour"})
	if err != nil {
		return err.Error()
	}
	result, err := r.Do(ctx)
	if err != nil {
		return err.Error()
	}
	if result.Status != abi.Succeeded || result.RecordsFlushed != 1000 {
		return fmt.Sprintf("ended as %s with %d records: %s", result.Status, result.RecordsFlushed, describe(result))
	}
	return ""
}

func (n *neighbour) stop(t *testing.T) {
	t.Helper()
	n.end()
	n.done.Wait()
	if said := n.failed.Load(); said != nil {
		t.Errorf("the neighbour's run was disturbed: %s", *said)
	}
	if n.rounds.Load() == 0 {
		t.Error("the neighbour never finished a run")
	}
}

// budgets are those of the case, over the host's.
func budgets(base run.Budgets, c corpus.Case) run.Budgets {
	if c.Budgets.Compute > 0 {
		base.Compute = c.Budgets.Compute
	}
	if c.Budgets.Active > 0 {
		base.Active = c.Budgets.Active
	}
	if c.Budgets.Stall > 0 {
		base.Stall = c.Budgets.Stall
	}
	return base
}

// plant builds the tree of the file attacks below dir.
func plant(t *testing.T, dir string) {
	t.Helper()
	for _, e := range corpus.Tree() {
		path := filepath.Join(dir, e.Path)
		var err error
		switch e.Kind {
		case corpus.TreeFolder:
			err = os.Mkdir(path, 0o700)
		case corpus.TreeFile:
			err = os.WriteFile(path, []byte(e.Content), 0o600)
		case corpus.TreeSymlink:
			err = os.Symlink(e.Content, path)
		case corpus.TreeHardLink:
			err = os.Link(filepath.Join(dir, e.Content), path)
		case corpus.TreeFIFO:
			err = makeFIFO(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// outside lists everything of the tree that no connector may see, with content.
func outside(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, top := range []string{"outside.txt", "elsewhere/other.txt"} {
		b, err := os.ReadFile(filepath.Join(dir, top))
		if err != nil {
			t.Fatal(err)
		}
		seen[top] = string(b)
	}
	for _, folder := range []string{".", "elsewhere"} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			seen[filepath.Join(folder, e.Name())+" "] = e.Type().String()
		}
	}
	return seen
}
