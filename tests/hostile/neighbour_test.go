package hostile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/tests/build"
)

// A neighbour is an honest connector that runs again and again beside the
// attacks; each of its runs must succeed, and in about the time it took before
// there were any.
type neighbour struct {
	rounds atomic.Int64
	failed atomic.Pointer[string]
	step   chan struct{} // capacity 1: a round ended
	turn   sync.Mutex    // held during a round, and by whoever wants none
	end    context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	took   []time.Duration
	before int // of took, without attacks
}

func startNeighbour(t *testing.T, h *app.Host) *neighbour {
	t.Helper()
	l := loadNeighbour(t, h)
	n := &neighbour{step: make(chan struct{}, 1)}
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	n.done.Go(func() { n.live(ctx, h, l) })
	t.Cleanup(func() { end(); n.done.Wait() })
	return n
}

func loadNeighbour(t *testing.T, h *app.Host) *app.Loaded {
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
	return l
}

func (n *neighbour) live(ctx context.Context, h *app.Host, l *app.Loaded) {
	for ctx.Err() == nil {
		n.turn.Lock()
		began := time.Now()
		said := n.round(h, l)
		took := time.Since(began)
		n.turn.Unlock()
		if said != "" {
			n.failed.CompareAndSwap(nil, &said)
		}
		n.mu.Lock()
		n.took = append(n.took, took)
		n.mu.Unlock()
		n.rounds.Add(1)
		select {
		case n.step <- struct{}{}:
		default:
		}
	}
}

// round is one run; it returns what went wrong.
func (n *neighbour) round(h *app.Host, l *app.Loaded) string {
	ctx := context.Background()
	r, err := h.Start(ctx, app.RunRequest{Connector: l, Connection: "neighbour"})
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

// await returns after so many rounds since the start.
func (n *neighbour) await(t *testing.T, rounds int64) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for n.rounds.Load() < rounds {
		select {
		case <-n.step:
		case <-deadline:
			t.Fatalf("the neighbour needs more than 2 minutes for %d runs", rounds)
		}
		n.check(t)
	}
}

// pause runs fn between two rounds.
func (n *neighbour) pause(t *testing.T, fn func()) {
	t.Helper()
	n.turn.Lock()
	defer n.turn.Unlock()
	fn()
}

// attacked says that rounds from now on count as under attack.
func (n *neighbour) attacked() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.before = len(n.took)
}

// pace is the median time of a round before the attacks and under them.
func (n *neighbour) pace() (before, under time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return median(n.took[:n.before]), median(n.took[n.before:])
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func (n *neighbour) check(t *testing.T) {
	t.Helper()
	if said := n.failed.Load(); said != nil {
		t.Fatalf("the neighbour's run was disturbed: %s", *said)
	}
}

// slowest is how much longer than before the attacks a round may take on
// average: on two cores a looping guest and the compiler of another take their
// share, but nothing in the host may be held up.
const slowest = 8

func (n *neighbour) stop(t *testing.T) {
	t.Helper()
	n.end()
	n.done.Wait()
	n.check(t)
	if before, under := n.pace(); under == 0 || under > slowest*before {
		t.Errorf("the neighbour's rate collapsed: a run takes %v, before the attacks %v", under, before)
	}
}
