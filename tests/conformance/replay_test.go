package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/tests/campaign"
)

// Every transcript ends as it says, on each of its transports, and every run keeps the
// invariants. Beside a soak a case that is for both is played on one of them, the next case
// of its file on the other.
func TestTranscripts(t *testing.T) {
	for _, f := range readTranscripts(t) {
		name := strings.TrimSuffix(filepath.Base(f.path), ".txt")
		got := map[*playedRun]string{}
		t.Run(name, func(t *testing.T) {
			for i, c := range f.cases {
				on := c.transports()
				if len(on) > 1 && !campaign.Soak() && !*update {
					on = on[i%len(on):][:1]
				}
				replayed := make(chan map[*playedRun]string, 1)
				t.Run(c.name, func(t *testing.T) {
					if !*update {
						t.Parallel()
					}
					replayed <- replay(t, c, on, false)
				})
				if *update {
					select {
					case r := <-replayed:
						for k, v := range r {
							got[k] = v
						}
					default: // filtered out by -run, or failed
					}
				}
			}
		})
		if *update && !t.Failed() {
			if err := f.write(got); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The interpreter gives the same outcomes as the compiler. It is slow, so it plays only
// the first case of each file, and in a soak every fifth.
func TestTranscriptsInterpreted(t *testing.T) {
	for _, f := range readTranscripts(t) {
		for i, c := range f.cases {
			if i%5 != 0 || i > 0 && !campaign.Soak() || slices.Contains(timed, c.name) {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(f.path), ".txt")+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				replay(t, c, c.transports(), true)
			})
		}
	}
}

// timed are cases whose budgets depend on the compiler's speed.
var timed = []string{"compute", "active", "stall", "no-stall", "owner-wait-is-free", "done-and-stays"}

// replay plays a case on transports and returns the outcomes of the first.
func replay(t *testing.T, c *scenario, transports []string, interpreter bool) map[*playedRun]string {
	out := map[*playedRun]string{}
	for _, transport := range transports {
		fault := ""
		for _, pace := range paces {
			if fault = replayOn(t, c.slowed(pace), transport, interpreter, out); fault == "" || !c.timed() {
				break
			}
		}
		if fault != "" {
			t.Error(fault)
		}
	}
	return out
}

// paces are how many times longer the durations of a case with budgets are, one after the
// other: what comes of it depends on which of them ends first, and to a busy machine a
// short one is over before the guest has begun.
var paces = []time.Duration{1, 5, 25}

// replayOn plays a case on one transport and says what came out differently, "" for
// nothing. With -update it puts what came out into out.
func replayOn(t *testing.T, c *scenario, transport string, interpreter bool, out map[*playedRun]string) (fault string) {
	g := &stage{connection: "player", scenario: c, transport: transport, interpreter: interpreter}
	refused := g.open(t)
	for i, r := range c.runs {
		p := &played{refused: refused}
		if refused == nil {
			p = g.play(t, r)
			g.invariants(t, p)
		}
		text := g.outcome(t, p)
		want := r.want
		if *update {
			want = out[r]
			if want == "" && firstLine(r.want) == firstLine(text) {
				out[r] = text
				continue
			}
			if want == "" {
				want = r.want
			}
		}
		if diff := cmp.Diff(want, text); diff != "" {
			fault += fmt.Sprintf("%s, run %d, on %s (-want +got):\n%s\nin full:\n%s\n", c.name, i+1, transport, diff, text)
		}
	}
	return fault
}

// firstLine of an outcome is written by hand, from the spec; -update refuses to
// change it.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
