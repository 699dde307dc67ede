//go:build unix

package hostile_test

import (
	"slices"
	"testing"
)

// report logs the figures of the scorecard.
func (c *siege) report(t *testing.T) {
	t.Logf("anonymous memory: %d MiB at the start, at most %d MiB more (%s)", c.start>>20, c.worst.bytes>>20, c.worst.name)
	t.Logf("neighbour: %d runs", c.neighbour.rounds)
	if len(c.overrun) > 0 {
		slices.Sort(c.overrun)
		t.Logf("CPU time beyond the compute budget, %d runs: median %v, worst %v",
			len(c.overrun), c.overrun[len(c.overrun)/2], c.overrun[len(c.overrun)-1])
	}
}
