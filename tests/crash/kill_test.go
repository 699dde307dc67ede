package crash

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// kills is how often the campaign kills; SLUICE_CRASH_CYCLES sets it.
func kills(t *testing.T) int {
	t.Helper()
	s := os.Getenv("SLUICE_CRASH_CYCLES")
	if s == "" {
		return 12
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("SLUICE_CRASH_CYCLES=%q: want a number from 1", s)
	}
	return n
}

// seeded is a source that can be repeated with SLUICE_CRASH_SEED.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("SLUICE_CRASH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("SLUICE_CRASH_SEED: %v", err)
		}
	}
	t.Logf("seed %d (repeat with SLUICE_CRASH_SEED=%d)", seed, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A run collects so many pages; pagesEvents is about how many events that is.
const (
	pagesPerRun = 25
	pagesEvents = 4*pagesPerRun + 10
)

// A moment is when a host is killed: after so many events and then some time.
type moment struct {
	events int
	after  time.Duration
}

// anyMoment: a third of the kills hits the start of the program (opening the
// store, closing the run before, launching), the others anything from the
// first event to past the exit.
func anyMoment(r *rand.Rand) moment {
	if r.IntN(3) == 0 {
		return moment{0, time.Duration(r.IntN(120_000)) * time.Microsecond}
	}
	return moment{1 + r.IntN(pagesEvents*5/4), time.Duration(r.IntN(3_000)) * time.Microsecond}
}

// killed lets a run go until the moment has come, kills the host alone, and
// returns the events that were announced. dead is false when the run was over
// before.
func (l *live) killed(m moment) (announced []event, dead bool) {
	l.p.t.Helper()
	l.await(m.events)
	<-time.After(m.after)
	_ = l.cmd.Process.Kill() // a process that is gone already shows below
	announced = l.rest()
	err := l.cmd.Wait()
	status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() && status.ExitStatus() != 0 {
		l.p.t.Fatalf("the run ended by itself: %v\n%s%s", err, l.out.String(), l.errs.String())
	}
	return announced, status.Signaled()
}

// TestKill: whatever moment the host is killed at (R188, S114 to S121), its
// workers die with it, the next command of whatever kind says how the run
// ended, cursors are those that were committed and no others (R92, R77), every
// batch that was announced is stored once, timelines have no gaps, and the
// store agrees with itself. In the end an undisturbed run has everything, and
// one more changes nothing.
func TestKill(t *testing.T) {
	r, total := seeded(t), kills(t)
	adopt(t)
	w := newWitness(program{t, filepath.Join(t.TempDir(), "data")})
	w.undisturbed(pagesPerRun)
	w.check()
	done, survivors, rounds := 0, 0, 0
	for done < total {
		rounds++
		for range 1 + r.IntN(2) { // sometimes the next start is another victim
			m := anyMoment(r)
			announced, dead := w.start(w.committed + pagesPerRun).killed(m)
			orphans := orphansGone(t)
			w.saw(announced)
			if dead {
				done++
				survivors += orphans
			}
			t.Logf("round %d: killed=%v after %d events (wanted %d, %v), workers orphaned %d", rounds, dead, len(announced), m.events, m.after, orphans)
		}
		w.check()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills in %d rounds, %d workers orphaned and gone; %d runs, %d pages committed, %d records acknowledged",
		done, rounds, survivors, len(w.ended), w.committed, len(w.acked))
	w.complete()
}
