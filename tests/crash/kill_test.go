package crash

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehost/sluice/tests/campaign"
)

// pagesPerRun is how many pages a run collects, pagesEvents about how many events that
// gives.
const (
	pagesPerRun = 25
	pagesEvents = 4*pagesPerRun + 10
)

// A moment is when a host is killed: after a number of events and then some time.
type moment struct {
	events int
	after  time.Duration
}

// anyMoment picks a moment: a third of the kills hit the start of the program (opening
// the store, closing the run before, launching), the others anything from the first
// event to after the exit.
func anyMoment(r *rand.Rand) moment {
	if r.IntN(3) == 0 {
		return moment{0, time.Duration(r.IntN(120_000)) * time.Microsecond}
	}
	return moment{1 + r.IntN(pagesEvents*5/4), time.Duration(r.IntN(3_000)) * time.Microsecond}
}

// killed lets a run go until the moment has come, kills the host alone, and returns the
// events that were announced. dead is false if the run was over before.
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

// TestKill kills the host at any moment: its workers die with it, the next command says
// how the run ended, cursors are exactly those that were committed, every batch that
// was announced is stored once, timelines have no gaps, every file that a record holds is
// there and no other, and the store is consistent. In
// the end an undisturbed run has everything, and one more changes nothing.
func TestKill(t *testing.T) {
	c := campaign.New(t, "kill -9, a run")
	adopt(t)
	w := newWitness(program{t: t, data: filepath.Join(t.TempDir(), "data"), filed: true})
	w.undisturbed(pagesPerRun)
	w.check()
	done, survivors, rounds := 0, 0, 0
	for total := c.Length(4, 1); done < total; {
		rounds++
		for range 1 + c.IntN(2) { // sometimes the next start is another victim
			m := anyMoment(c.Rand)
			announced, dead := w.start(w.committed + pagesPerRun).killed(m)
			orphans := orphansGone(t)
			w.saw(announced)
			if dead {
				done++
				survivors += orphans
				c.Cycle()
			}
		}
		w.check()
		c.Checked(len(w.acked))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills in %d rounds, %d workers orphaned and gone; %d runs, %d pages committed, %d records acknowledged",
		done, rounds, survivors, len(w.ended), w.committed, len(w.acked))
	w.complete()
}

// killAt kills a command after some time, unless it is over by then, and reports
// whether it was over and said that it had done its work.
func killAt(t *testing.T, cmd *exec.Cmd, after time.Duration) (done bool) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	orphansGone(t)
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() && status.ExitStatus() != 0 {
		t.Fatalf("%v ended by itself: %v\n%s", cmd.Args[1:], err, errs.String())
	}
	return !status.Signaled()
}
