// Package campaign is shared by tests that repeat a fault and count: how often to
// repeat it, a seed that makes the same choices again, and a line of the score.
package campaign

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// The environment of a campaign.
const (
	envCycles = "SLUICE_CYCLES" // how often; unset is the short slice of CI
	envSeed   = "SLUICE_SEED"   // repeats the choices of an earlier campaign
	envScore  = "SLUICE_SCORE"  // file that gets a Line per campaign
)

// A Line of the score is what one campaign counted.
type Line struct {
	Campaign string
	Cycles   int     // faults that struck
	Runs     int     // runs that they struck, where one strikes many
	Checked  int     // acknowledged things that were looked for afterwards
	Lost     int     // of those, not there
	Torn     int     // there in part, twice, or changed
	Refused  int     // faults that were reported instead of hidden
	Seconds  float64 // whole campaign
	Seed     uint64
	Failed   bool
}

// A Campaign counts while its test runs. Its methods may be called concurrently, except
// those of the random source.
type Campaign struct {
	*rand.Rand
	t     *testing.T
	began time.Time

	mu   sync.Mutex // guards line
	line Line
}

// New begins a campaign, which ends with its test.
func New(t *testing.T, name string) *Campaign {
	t.Helper()
	seed := uint64(rand.Uint32()) // short enough to be typed
	if s := os.Getenv(envSeed); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s=%q: want a number", envSeed, s)
		}
	}
	c := &Campaign{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, began: time.Now(), line: Line{Campaign: name, Seed: seed}}
	t.Cleanup(c.end)
	return c
}

// Length returns the number of cycles: short, or as many times that as the environment
// says.
func (c *Campaign) Length(short, times int) int {
	c.t.Helper()
	s := os.Getenv(envCycles)
	if s == "" {
		return short
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		c.t.Fatalf("%s=%q: want a number from 1", envCycles, s)
	}
	return n * times
}

// Soak reports whether tests are to be exhaustive.
func Soak() bool { return os.Getenv(envCycles) != "" }

func (c *Campaign) count(n *int, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n += by
}

// Cycle counts a fault that struck.
func (c *Campaign) Cycle() { c.count(&c.line.Cycles, 1) }

// Struck counts runs that a fault struck.
func (c *Campaign) Struck(runs int) { c.count(&c.line.Runs, runs) }

// Runs returns how many runs were struck so far.
func (c *Campaign) Runs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line.Runs
}

// Checked counts acknowledged things that were looked for.
func (c *Campaign) Checked(n int) { c.count(&c.line.Checked, n) }

// Refused counts a fault that was reported.
func (c *Campaign) Refused() { c.count(&c.line.Refused, 1) }

// Lost fails the test for n acknowledged things that are gone.
func (c *Campaign) Lost(n int, format string, args ...any) {
	c.t.Helper()
	c.count(&c.line.Lost, n)
	c.t.Errorf("lost: "+format, args...)
}

// Torn fails the test because something is broken that must be whole.
func (c *Campaign) Torn(format string, args ...any) {
	c.t.Helper()
	c.count(&c.line.Torn, 1)
	c.t.Errorf("torn: "+format, args...)
}

func (c *Campaign) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.line
	l.Seconds, l.Failed = time.Since(c.began).Seconds(), c.t.Failed()
	c.t.Logf("%+v", *l)
	if l.Failed {
		c.t.Logf("the same choices again: %s=%d %s=%d go test -count=1 -run '^%s$' (the moments are the machine's)",
			envSeed, l.Seed, envCycles, max(l.Cycles, 1), c.t.Name())
	}
	if c.t.Skipped() {
		return
	}
	if err := l.append(os.Getenv(envScore)); err != nil {
		c.t.Error(err)
	}
}

func (l *Line) append(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", envScore, err)
	}
	defer f.Close()
	_, err = f.Write(append(text, '\n'))
	return err
}
