//go:build unix

// Package hostile_test runs the corpus of hostile modules through a whole host: each
// ends its own run, with the right reason, and affects nothing else.
package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/build"
	"github.com/sluicehost/sluice/tests/campaign"
	"github.com/sluicehost/sluice/tests/hostile/corpus"
)

const (
	// mostGrowth is how much the host may grow by, whatever runs.
	mostGrowth = 64 << 20
	// warmRounds are the neighbour's runs before the first attack, so that what they
	// leave in pools and caches does not count as the attacks' doing.
	warmRounds = 25
	// waiting is how many workers a host starts in advance, keptOpen for how many
	// modules it keeps a descriptor open.
	waiting  = 2
	keptOpen = 64
)

// roomy returns budgets that no case uses up by accident: cases that mean to bring
// their own.
func roomy() run.Budgets {
	b := run.DefaultBudgets()
	b.Compute, b.Active, b.Stall, b.Total = 30*time.Second, time.Minute, time.Minute, 2*time.Minute
	return b
}

func open(t testing.TB) *app.Host {
	t.Helper()
	cache, err := build.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	h, err := app.Open(context.Background(), app.Options{
		Store: "badger:" + filepath.Join(t.TempDir(), "data") + "?memory=small", CacheDir: cache, Budgets: roomy(),
	})
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

// A siege is one host under attack, its neighbour and its instruments.
type siege struct {
	host      *app.Host
	modules   string // a directory
	cases     []corpus.Case
	neighbour *neighbour
	gauge     *gauge
	start     int64      // anonymous memory before the first attack
	quiet     population // when nothing runs
	attacks   int
	overrun   []time.Duration // of compute budgets
	worst     growth
}

// growth is how far the host's memory was above its start, and in which case.
type growth struct {
	bytes int64
	name  string
}

// TestCorpus runs the whole corpus in a soak, and a fixed part of it otherwise: all modules that are refused, and of
// those that run the first of every four in a group. See docs/spec/security.md, "Attacks".
func TestCorpus(t *testing.T) {
	c := begin(t)
	ran := map[corpus.Group]int{}
	for _, attack := range c.cases {
		if !attack.Refused() {
			ran[attack.Group]++
			if !campaign.Soak() && ran[attack.Group]%4 != 1 {
				continue
			}
		}
		t.Run(string(attack.Group)+"/"+attack.Name, func(t *testing.T) { c.attack(t, attack) })
	}
	c.report(t)
}

func begin(t *testing.T) *siege {
	t.Helper()
	c := &siege{gauge: startGauge(t), host: open(t)}
	c.modules, c.cases = modules(t)
	c.neighbour = newNeighbour(t, c.host)
	for i := range warmRounds {
		if i == warmRounds-5 {
			c.gauge.reset()
		}
		c.neighbour.beside(t, func() {})
	}
	c.start = c.gauge.peak.Load()
	c.quiet = c.rested(t)
	c.quiet.descriptors += keptOpen
	c.quiet.goroutines++ // of a subtest
	return c
}

// attack runs one case in parallel with the neighbour, then checks everything that the
// case must not affect.
func (c *siege) attack(t *testing.T, attack corpus.Case) {
	c.gauge.reset()
	var refused *run.Refusal
	var result *run.Result
	strike := func() { refused, result = c.run(t, attack) }
	if attack.Refused() {
		strike()
	} else if first := c.neighbour.beside(t, strike); !first && result != nil && result.Deadline != "" {
		t.Error("the neighbour was not done when the attack had used up its time")
	}
	check(t, attack, refused, result)
	c.grown(t, attack.Name)
	if now := c.settled(t, c.quiet); now.exceeds(c.quiet) {
		t.Errorf("left behind: %v; want at most %v", now, c.quiet)
	}
	if result != nil && result.Deadline == "compute" {
		c.overrun = append(c.overrun, time.Duration(result.Usage.CPU)*time.Millisecond-budgets(roomy(), attack).Compute)
	}
}

func (c *siege) grown(t *testing.T, name string) {
	t.Helper()
	g := c.gauge.peak.Load() - c.start
	if g > c.worst.bytes {
		c.worst = growth{g, name}
	}
	if g > mostGrowth {
		t.Errorf("the host grew by %d MiB; want at most %d", g>>20, mostGrowth>>20)
	}
}

// run starts one case and returns how it was refused or how it ended.
func (c *siege) run(t *testing.T, attack corpus.Case) (*run.Refusal, *run.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	l, err := c.host.Load(ctx, filepath.Join(c.modules, attack.Name+".wasm"), "")
	if err != nil {
		return refusalOf(t, err), nil
	}
	c.attacks++
	request := app.RunRequest{Connector: l, Connection: store.ConnectionID("attack-" + strconv.Itoa(c.attacks))}
	if attack.Files {
		request.Approved.Mounts = []store.Mount{tree(t, c.host)}
	}
	request.Budgets = budgets(roomy(), attack)
	request.MemoryBytes = uint64(attack.Budgets.Memory)
	r, err := c.host.Start(ctx, request)
	if err != nil {
		return refusalOf(t, err), nil
	}
	result, err := r.Do(ctx)
	if err != nil {
		return refusalOf(t, err), nil
	}
	return nil, result
}

func refusalOf(t *testing.T, err error) *run.Refusal {
	t.Helper()
	var refused *run.Refusal
	if !errors.As(err, &refused) {
		t.Fatalf("a refusal was expected, not %v", err)
	}
	return refused
}

// budgets are those of the case, over base.
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

func check(t *testing.T, c corpus.Case, refused *run.Refusal, result *run.Result) {
	t.Helper()
	if refused != nil {
		if c.Refused() || c.Accepts(refused.Code) || c.Accepts(corpus.LaunchFail) {
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
