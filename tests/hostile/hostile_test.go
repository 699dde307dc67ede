// Package hostile_test runs the corpus of hostile modules through a whole host:
// each ends its own run, with the right reason, and nothing else (S7).
package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/hostile/corpus"
)

func TestMain(m *testing.M) {
	if code, worker := host.Worker(os.Args[1:]); worker {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// cacheDir is shared by all tests of the tree, so that a module is compiled
// once per machine.
func cacheDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("SLUICE_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "sluice-tests")
}

func open(t testing.TB, budgets run.Budgets) *host.Host {
	t.Helper()
	h, err := host.Open(context.Background(), host.Options{Store: "memory:", CacheDir: cacheDir(t), Budgets: budgets})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// TestCorpus is S7 and the rows of security.md §18 for a connector's author.
func TestCorpus(t *testing.T) {
	base := run.DefaultBudgets()
	base.Compute, base.Total = 2*time.Second, 20*time.Second
	h := open(t, base)
	neighbour := startNeighbour(t, h)
	before := rss(t)
	for _, c := range corpus.Modules() {
		t.Run(string(c.Group)+"/"+c.Name, func(t *testing.T) {
			refused, result := attack(t, h, c)
			check(t, c, refused, result)
			if grown := rss(t) - before; grown > 64<<20 {
				t.Errorf("host grew by %d MiB; want at most 64", grown>>20)
			}
			if neighbour.failed.Load() != nil {
				t.Fatalf("the neighbour's run was disturbed: %v", *neighbour.failed.Load())
			}
		})
	}
	neighbour.stop(t)
}

// attack runs one case and returns how it was refused or how it ended.
func attack(t *testing.T, h *host.Host, c corpus.Case) (*run.Refusal, *run.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	path := filepath.Join(t.TempDir(), "attack.wasm")
	if err := os.WriteFile(path, c.Wasm(), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := h.Load(ctx, path, "")
	if err != nil {
		return refusalOf(t, err), nil
	}
	request := host.RunRequest{Connector: l, Connection: store.ConnectionID("attack-" + strconv.Itoa(int(attacks.Add(1))))}
	if c.Files {
		request.Approved.Mounts = []store.Mount{tree(t, h)}
	}
	request.Budgets = budgets(h.Options.Budgets, c)
	request.MemoryBytes = uint64(c.Budgets.Memory)
	r, err := h.Start(ctx, request)
	if err != nil {
		return refusalOf(t, err), nil
	}
	result, err := r.Do(ctx)
	if err != nil {
		return refusalOf(t, err), nil
	}
	return nil, result
}

var attacks atomic.Int64

func refusalOf(t *testing.T, err error) *run.Refusal {
	t.Helper()
	var refused *run.Refusal
	if !errors.As(err, &refused) {
		t.Fatalf("a refusal was expected, not %v", err)
	}
	return refused
}

func tree(t *testing.T, h *host.Host) store.Mount {
	t.Helper()
	dir := t.TempDir()
	plant(t, dir)
	before := outside(t, dir)
	t.Cleanup(func() {
		if diff := cmp.Diff(before, outside(t, dir)); diff != "" {
			t.Errorf("files outside of the approved directory changed (-before +after):\n%s", diff)
		}
	})
	m, err := h.ApproveMount("data", filepath.Join(dir, corpus.TreeRoot), true)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func check(t *testing.T, c corpus.Case, refused *run.Refusal, result *run.Result) {
	t.Helper()
	if refused != nil {
		if c.Refused() || c.Accepts(corpus.LaunchFail) {
			return
		}
		t.Fatalf("%s: refused with %v; want %s", c.Rule, refused, c.Want)
	}
	got := result.Status
	if result.TerminalReason != nil {
		got = *result.TerminalReason
	}
	if c.Refused() || !c.Accepts(got) {
		t.Fatalf("%s: ended as %s %s; want %s %v", c.Rule, got, describe(result), c.Want, c.Or)
	}
	if v := result.Violation; v != nil && !c.AcceptsSubtype(string(v.Subtype)) {
		t.Errorf("%s: subtype %s; want %s %v", c.Rule, v.Subtype, c.Subtype, c.OrSubtype)
	}
	if c.Trap != "" && got == corpus.Trapped && (result.Trap == nil || result.Trap.Kind != c.Trap) {
		t.Errorf("%s: trap %v; want %s", c.Rule, result.Trap, c.Trap)
	}
	if c.Deadline != "" && got == corpus.TimedOut && result.Deadline != c.Deadline {
		t.Errorf("%s: deadline %s; want %s", c.Rule, result.Deadline, c.Deadline)
	}
}

func describe(r *run.Result) string {
	if r.Failure == nil {
		return ""
	}
	return fmt.Sprintf("(%s %s: %s)", r.Failure.Subtype, r.Deadline, r.Failure.Message)
}

// rss is the host's resident memory in bytes.
func rss(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("SKIPPED: no /proc on this system: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no RssAnon in /proc/self/status")
	return 0
}
